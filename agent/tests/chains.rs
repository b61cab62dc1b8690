//! shunt in a chain with the reference plugins, as libcni runs them: each gets what the one before it gave, DEL goes back
//! along the chain. Needs root, Debian's containernetworking-plugins and `cargo xtask build`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "chains/adopt.rs"]
mod adopt;
#[path = "chains/all.rs"]
mod all;
#[path = "chains/bandwidth.rs"]
mod bandwidth;
#[path = "chains/drop_in.rs"]
mod drop_in;
#[path = "chains/firewall.rs"]
mod firewall;
#[path = "chains/first.rs"]
mod first;
#[path = "chains/kept.rs"]
mod kept;
#[path = "chains/migration/mod.rs"]
mod migration;
#[path = "chains/portmap.rs"]
mod portmap;
#[path = "chains/source_routes.rs"]
mod source_routes;
#[path = "chains/stage.rs"]
mod stage;
#[path = "chains/stream.rs"]
mod stream;
#[path = "chains/tuning.rs"]
mod tuning;
#[path = "chains/uninstall.rs"]
mod uninstall;
