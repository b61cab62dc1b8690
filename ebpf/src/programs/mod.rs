//! The pipelines.

pub mod from_mapped;
