//! The differential oracle: the same frames through a bridge with our programs and through a plain one, and what comes out
//! of every port of both. And what `explain` says of each frame beforehand, against what is then counted of it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

#[path = "oracle/answers.rs"]
mod answers;
#[path = "oracle/explained.rs"]
mod explained;
#[path = "oracle/frames.rs"]
mod frames;
#[path = "oracle/packets.rs"]
mod packets;
#[path = "oracle/same.rs"]
mod same;
#[path = "oracle/settings.rs"]
mod settings;
#[path = "oracle/twins.rs"]
mod twins;
#[path = "oracle/vlans.rs"]
mod vlans;
#[allow(dead_code, reason = "other suites use more of it")]
#[path = "netns/wire.rs"]
mod wire;
