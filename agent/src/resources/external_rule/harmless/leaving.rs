//! Rules by which packets leave a chain before its next rules: `return` and `accept`.

use nix::libc;
use shunt_netlink::nf_tables::Expression;

use super::super::reading::attributes::{NFTA_IMMEDIATE_DATA, NFTA_IMMEDIATE_DREG};
use super::super::reading::ip::{Ip, ip};
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
    /// What comes from these, to others or to anybody.
    Between(Asked, Option<Asked>),
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
    let [from, to] = [End::Source, End::Destination].map(|end| asked(asking, family, end));
    let ends = [&from, &to].into_iter().flatten().count();
    let masks = asking.iter().filter(|expression| expression.name == "bitwise").count();
    // A rule for one IP may ask for that first.
    let is_family = |pair: &[Expression]| {
        let of = ip(pair, libc::NFPROTO_UNSPEC as u8);
        of != Ip::Any && of == ip(pair, family)
    };
    let loads = 2 * ends + masks;
    let of_family = if asking.get(..2).is_some_and(is_family) && asking.len() > loads { 2 } else { 0 };
    if asking.len() != loads + of_family {
        return None;
    }
    match (from, to) {
        (Some(from), to) => Some(Leaving::Between(from, to)),
        (None, to) => to.map(Leaving::To),
    }
}
