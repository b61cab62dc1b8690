//! Names in nf_tables.

/// The table of the agent, of the family `inet`.
pub(crate) const TABLE: &str = "shunt";
