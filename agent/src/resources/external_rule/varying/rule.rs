//! What one rule does to packets of a flow that is established.

use nix::libc;
use shunt_netlink::nf_tables::{Expression, Verdict};

use super::super::reading::attributes::{
    NFTA_IMMEDIATE_DATA, NFTA_LOOKUP_DREG, NFTA_LOOKUP_FLAGS, NFTA_LOOKUP_SET,
};
use super::super::reading::expression::effect;
use super::super::reading::silent::is_silent;
use super::super::reading::states::{self, ESTABLISHED, NEW};
use super::super::reading::xtables;
use super::never_fast;

/// A set that a rule looks up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lookup {
    /// Its name.
    pub(super) set: String,
    /// Whether its elements are verdicts.
    pub(super) decides: bool,
    /// Whether its keys are states, and it is all that the rule asks.
    pub(super) of_state: bool,
}

/// What a rule does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    /// Whether only packets meet what it does that open a flow, or are never fast.
    pub(super) is_for_others: bool,
    /// By what the packets of a flow may differ for what it decides.
    pub(super) varies: Option<String>,
    /// Whether it decides or changes anything.
    pub(super) acts: bool,
    /// What it decides at its end.
    pub(super) verdict: Option<Verdict>,
    /// Whether some packets are not tracked because of it: they are never established.
    pub(super) untracks: bool,
    /// The sets that it looks up.
    pub(super) lookups: Vec<Lookup>,
    /// Whether every packet meets its end.
    pub(super) is_for_all: bool,
    /// Whether every packet does that belongs to something established.
    pub(super) is_for_established: bool,
}

/// What `rule` of a table of `family` does.
pub(super) fn summary(rule: &[Expression], family: u8) -> Summary {
    let asking: Vec<&Expression> = rule.iter().filter(|expression| !is_silent(expression)).collect();
    let mut found = Summary::default();
    let (mut acts, mut asked_otherwise) = (false, 0);
    let mut states = None;
    let mut at = 0;
    while at < rule.len() {
        let expression = &rule[at];
        if let Some(asked) = states::asked(&rule[at..]) {
            states = Some(asked.states & states.unwrap_or(u32::MAX));
            asked_otherwise += usize::from(!asked.is_all);
            at += asked.expressions;
            continue;
        }
        let effect = effect(expression, &rule[..at], family);
        acts |= effect.acts;
        found.untracks |= untracks(expression);
        found.varies = found.varies.take().or(effect.varies);
        found.lookups.extend(lookup(expression, at, rule));
        if expression.name == "immediate" {
            found.verdict = expression.verdict(NFTA_IMMEDIATE_DATA).or(found.verdict.take());
        } else if !is_silent(expression) {
            asked_otherwise += 1;
        }
        at += 1;
    }
    // Whoever decides nothing may count and log what it likes.
    found.acts = acts;
    found.varies = found.varies.filter(|_| acts);
    found.is_for_others = states == Some(NEW) || never_fast::is_only_for(rule, family);
    found.is_for_all = asked_otherwise == 0 && states.is_none();
    found.is_for_established = asked_otherwise == 0 && states.is_none_or(|states| states & ESTABLISHED != 0);
    let of_state = asking.len() == 2 + usize::from(found.verdict.is_some());
    found.lookups.iter_mut().for_each(|lookup| lookup.of_state &= of_state);
    found
}

/// Whether it has the packet not tracked.
fn untracks(expression: &Expression) -> bool {
    expression.name == "notrack" || expression.name == "target" && xtables::untracks(expression)
}

fn lookup(expression: &Expression, at: usize, rule: &[Expression]) -> Option<Lookup> {
    if expression.name != "lookup" {
        return None;
    }
    let is_inverted = expression.number(NFTA_LOOKUP_FLAGS).unwrap_or_default() != 0;
    let decides = expression.number(NFTA_LOOKUP_DREG) == Some(libc::NFT_REG_VERDICT as u32);
    let of_state = !is_inverted && at.checked_sub(1).is_some_and(|before| states::is_load(&rule[before]));
    Some(Lookup { set: expression.text(NFTA_LOOKUP_SET)?, decides, of_state })
}
