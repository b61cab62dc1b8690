//! Goes through the rules that packets to host ports meet in a chain of translations.

use std::collections::{BTreeSet, HashMap};

use nix::libc;
use shunt_netlink::NetlinkError;
use shunt_netlink::nf_tables::{Element, Expression, TableOf};

use super::super::reading::attributes::{
    NFTA_IMMEDIATE_DATA, NFTA_LOOKUP_DREG, NFTA_LOOKUP_SET, NFTA_MATCH_NAME, NFTA_NAT_TYPE,
};
use super::super::reading::source::Source;
use super::asked::{self, HostPort};

/// Rules that are read at most, of one chain at a hook: those beyond are not named.
const MOST: usize = 5_000;

/// Chains behind each other at most (`NFT_JUMP_STACK_SIZE`, linux/netfilter/nf_tables.h).
const DEEPEST: usize = 16;

/// `NFT_NAT_DNAT`.
const DESTINATION: u32 = 1;

/// Targets of iptables that translate destinations.
const TARGETS: [&str; 3] = ["DNAT", "NETMAP", "REDIRECT"];

/// Host ports, by their place in the list.
type Places = BTreeSet<usize>;

/// What is read of one table.
pub(super) struct Walk<'a, S> {
    source: &'a mut S,
    table: &'a TableOf,
    ports: &'a [HostPort],
    rules: usize,
    /// With which host ports a chain was gone through.
    known: HashMap<String, Places>,
}

impl<'a, S: Source> Walk<'a, S> {
    pub(super) fn new(source: &'a mut S, table: &'a TableOf, ports: &'a [HostPort]) -> Self {
        Self { source, table, ports, rules: 0, known: HashMap::new() }
    }

    /// The host ports that `chain` may translate.
    ///
    /// # Errors
    /// The rules cannot be read.
    pub(super) fn of(mut self, chain: &str) -> Result<Places, NetlinkError> {
        let mut translated = Places::new();
        self.follow(chain, &(0..self.ports.len()).collect(), 0, &mut translated)?;
        Ok(translated)
    }

    /// What goes on to `chain` are packets to the host ports in `coming`.
    fn follow(
        &mut self,
        chain: &str,
        coming: &Places,
        depth: usize,
        translated: &mut Places,
    ) -> Result<(), NetlinkError> {
        let known = self.known.entry(chain.to_owned()).or_default();
        let coming: Places = coming.difference(known).copied().collect();
        known.extend(&coming);
        if coming.is_empty() || depth == DEEPEST || self.rules > MOST {
            return Ok(());
        }
        let rules = self.source.rules(self.table, chain)?;
        self.rules += rules.len();
        for rule in &rules {
            let met: Places = coming.iter().copied().filter(|at| self.meets(rule, *at)).collect();
            self.act(rule, &met, depth, translated)?;
        }
        Ok(())
    }

    /// Whether packets to a host port may meet the end of a rule, but for the sets that it looks up.
    fn meets(&self, rule: &[Expression], at: usize) -> bool {
        asked::may_be_for(rule, self.table.family, &self.ports[at])
    }

    /// What a rule does to packets that meet it.
    fn act(
        &mut self,
        rule: &[Expression],
        met: &Places,
        depth: usize,
        translated: &mut Places,
    ) -> Result<(), NetlinkError> {
        let mut met = met.clone();
        for (at, expression) in rule.iter().enumerate() {
            if met.is_empty() {
                return Ok(());
            }
            if expression.name == "lookup" {
                let elements = self.looked_up(expression)?;
                let is_port = at.checked_sub(1).is_some_and(|before| asked::is_port(&rule[before]));
                if expression.number(NFTA_LOOKUP_DREG) == Some(libc::NFT_REG_VERDICT as u32) {
                    return self.choose(&elements, is_port, &met, depth, translated);
                }
                if is_port {
                    met.retain(|it| asked::may_have(&elements, expression, self.ports[*it].port));
                }
            } else if translates(expression) {
                translated.extend(&met);
                return Ok(());
            } else if let Some(next) = next_chain(expression) {
                return self.follow(&next, &met, depth + 1, translated);
            }
        }
        Ok(())
    }

    /// A map of verdicts: where packets go on.
    fn choose(
        &mut self,
        elements: &[Element],
        is_port: bool,
        met: &Places,
        depth: usize,
        translated: &mut Places,
    ) -> Result<(), NetlinkError> {
        for element in elements {
            let Some(chain) = element.verdict.as_ref().and_then(|verdict| verdict.chain.clone()) else {
                continue;
            };
            let is_for = |at: &usize| !is_port || asked::may_be(element, self.ports[*at].port);
            let met: Places = met.iter().copied().filter(is_for).collect();
            self.follow(&chain, &met, depth + 1, translated)?;
        }
        Ok(())
    }

    fn looked_up(&mut self, lookup: &Expression) -> Result<Vec<Element>, NetlinkError> {
        let Some(set) = lookup.text(NFTA_LOOKUP_SET) else { return Ok(Vec::new()) };
        let elements = self.source.elements(self.table, &set)?;
        self.rules += elements.len();
        Ok(elements)
    }
}

/// Whether an expression translates destinations.
fn translates(expression: &Expression) -> bool {
    match expression.name.as_str() {
        "redir" => true,
        "nat" => expression.number(NFTA_NAT_TYPE) == Some(DESTINATION),
        "target" => {
            let name = expression.text(NFTA_MATCH_NAME).unwrap_or_default();
            TARGETS.contains(&name.as_str())
        }
        _ => false,
    }
}

/// The chain with which packets go on.
fn next_chain(expression: &Expression) -> Option<String> {
    if expression.name != "immediate" {
        return None;
    }
    expression.verdict(NFTA_IMMEDIATE_DATA)?.chain
}
