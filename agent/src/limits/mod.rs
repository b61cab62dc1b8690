//! Limits as numbers: token buckets, and the subnets that they apply to.

pub mod bucket;
pub mod subnets;
