//! How bad a fault is.

/// What it means for the node that something cannot be repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Gravity {
    /// It is unhealthy.
    Fault,
    /// An operator should know; an ADD works.
    Warning,
}
