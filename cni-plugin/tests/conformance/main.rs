//! The plugin as runtimes call it: verbs, versions, chains, bad input, and the reference plugins beside it.
//!
//! Each test has a node of its own, a network namespace, and an agent that only keeps books ([`books`]).

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad_input;
mod books;
mod callers;
mod capacity;
mod chains;
mod collection;
mod delegation;
mod differential;
mod doomed;
mod examples;
mod footprint;
mod golden;
mod lifecycle;
mod limits;
mod locks;
mod loopback;
mod masses;
mod matrix;
mod mutated;
mod patience;
mod proof;
mod restrictions;
mod runtime;
mod served;
mod set_up;
mod skeleton;
mod status;
mod streams;
mod unserved;
mod update;
mod via_agent;
