//! What neither asks nor decides.

use shunt_netlink::nf_tables::Expression;

use super::attributes::NFTA_MATCH_NAME;

/// The match of iptables that asks for nothing.
const COMMENT: &str = "comment";

/// Whether expressions of this kind neither ask nor decide.
pub(in super::super) fn is_silent_kind(name: &str) -> bool {
    matches!(name, "counter" | "last" | "log")
}

/// Whether an expression neither asks nor decides.
pub(in super::super) fn is_silent(expression: &Expression) -> bool {
    let is_comment = || expression.text(NFTA_MATCH_NAME).as_deref() == Some(COMMENT);
    is_silent_kind(&expression.name) || expression.name == "match" && is_comment()
}
