//! CAPACITY: why it cannot be told.

/// The agent's answer is not the books.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CapacityError {
    /// It is to another question.
    #[error("the shunt agent does not say what capacity there is")]
    Unclear,
    /// It cannot be printed.
    #[error("the shunt agent's answer: {0}")]
    Json(#[from] serde_json::Error),
}
