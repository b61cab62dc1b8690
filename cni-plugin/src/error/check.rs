//! CHECK and FINALIZE: an attachment is not as its result says.

use super::fault::Fault;

/// The differences.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub(crate) struct CheckError(pub(crate) Vec<Fault>);
