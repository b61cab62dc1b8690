//! What an expression makes of its rule.

/// TCP's options that only SYN has: the maximum segment size, window scaling, and that selective acknowledgements are understood (RFC 9293, RFC 7323,
/// RFC 2018).
pub(in super::super) const OPTIONS_OF_SYN: [u8; 3] = [2, 3, 4];

/// What an expression does in its rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Effect {
    /// By what the packets of a flow may differ for it.
    pub(in super::super) varies: Option<String>,
    /// Whether it decides something, or changes the packet.
    pub(in super::super) acts: bool,
}

impl Effect {
    pub(in super::super) fn acting() -> Self {
        Self { varies: None, acts: true }
    }

    pub(in super::super) fn varying(by: impl Into<String>, acts: bool) -> Self {
        Self { varies: Some(by.into()), acts }
    }
}
