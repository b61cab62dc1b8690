//! Rules by which packets leave a chain before its next rules: `return` and `accept`.

use nix::libc;
use shunt_netlink::nf_tables::Expression;

use super::super::reading::attributes::{NFTA_IMMEDIATE_DATA, NFTA_IMMEDIATE_DREG, is_meta};
use super::super::reading::ip::ether_type;
use super::super::reading::marks;
use super::super::reading::silent::is_silent;
use super::confinement::{Asked, End, asked};

/// Who leaves a chain by a rule, each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// Every packet without a mark.
    Unmarked,
    /// What is sent to these.
    To(Asked),
}

/// Who leaves by `rule` of a table of `family`; none where that is not known.
pub(super) fn leaving(rule: &[Expression], family: u8) -> Option<Leaving> {
    let asking: Vec<Expression> = rule.iter().filter(|expression| !is_silent(expression)).cloned().collect();
    let (last, asking) = asking.split_last()?;
    let is_verdict = last.number(NFTA_IMMEDIATE_DREG) == Some(libc::NFT_REG_VERDICT as u32);
    let verdict = last.verdict(NFTA_IMMEDIATE_DATA).filter(|_| last.name == "immediate" && is_verdict)?;
    if ![libc::NF_ACCEPT, libc::NFT_RETURN].contains(&verdict.code) {
        return None;
    }
    match marks::asked(asking) {
        Some(mark) if mark.expressions == asking.len() => {
            return mark.is_for_unmarked.then_some(Leaving::Unmarked);
        }
        _ => {}
    }
    let to = asked(asking, family, End::Destination)?;
    let loads = if asking.iter().any(|expression| expression.name == "bitwise") { 3 } else { 2 };
    let is_family =
        |pair: &[Expression]| is_meta(&pair[0], libc::NFT_META_NFPROTO) || ether_type(pair).is_some();
    let of_family = if asking.len() > loads && is_family(&asking[..2]) { 2 } else { 0 };
    (asking.len() == loads + of_family).then_some(Leaving::To(to))
}
