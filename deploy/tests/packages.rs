//! What a node gets: packages with the same files and the same bytes each time, and what they do in a Debian root and by rpm's own tools.
//!
//! They are made of the programs of `cargo xtask build`. The root is `cargo xtask setup`'s; each test has a copy of it in namespaces of its
//! own, which end with the test.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "packages/contents.rs"]
mod contents;
#[path = "packages/debian.rs"]
mod debian;
#[path = "packages/made.rs"]
mod made;
#[path = "packages/node.rs"]
mod node;
#[path = "packages/redhat.rs"]
mod redhat;
#[path = "packages/served.rs"]
mod served;
