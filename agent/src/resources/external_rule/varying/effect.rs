//! What an expression makes of its rule.

/// What an expression does in its rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    /// By what the packets of a flow may differ for it.
    pub(super) varies: Option<String>,
    /// Whether it decides something, or changes the packet.
    pub(super) acts: bool,
}

impl Effect {
    pub(super) fn acting() -> Self {
        Self { varies: None, acts: true }
    }

    pub(super) fn varying(by: impl Into<String>, acts: bool) -> Self {
        Self { varies: Some(by.into()), acts }
    }
}
