//! Questions: nothing is changed.

mod account;
mod config;
mod explain;
pub(crate) mod flows;
mod health;
pub(crate) mod mappings;
pub(crate) mod owners;
mod report;
pub(crate) mod traffic;
