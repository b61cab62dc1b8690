//! Questions: nothing is changed.

mod explain;
pub(crate) mod flows;
mod health;
pub(crate) mod mappings;
mod report;
