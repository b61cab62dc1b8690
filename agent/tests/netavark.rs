//! shunt as a plugin of the real netavark, beside netavark's own bridge driver: the same containers reach the same, see the same clients, and leave
//! nothing. netavark is run as podman 5 runs it, with its JSON, in namespaces of the tests' own.
//!
//! Needs root, and `SHUNT_NETAVARK`: `cargo xtask setup` builds it. netavark's own driver wants `nft`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "netavark/documented.rs"]
mod documented;
#[path = "netavark/lifecycle.rs"]
mod lifecycle;
#[path = "netavark/oracle.rs"]
mod oracle;
#[path = "netavark/podman.rs"]
mod podman;
#[path = "netavark/side.rs"]
mod side;
#[path = "portmap/who.rs"]
mod who;
