//! Goes through the rules that packets of an established flow meet.

use std::collections::HashMap;

use nix::libc;
use shunt_netlink::NetlinkError;
use shunt_netlink::nf_tables::{Element, Set, TableOf, Verdict};

use super::super::reading::silent::is_silent_kind;
use super::super::reading::source::Source;
use super::super::reading::states::{self, ESTABLISHED, NEW};
use super::rule::{Lookup, Summary, summary};

/// Rules that are read at most, of one chain at a hook. A rule beyond may do anything.
const MOST: usize = 20_000;

/// What becomes of packets of established flows at the end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The chain has accepted each of them.
    Accepted,
    /// Some may go on behind the jump.
    Returns,
}

/// What a rule makes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It has accepted each of them.
    Accepted,
    /// Some may have left the chain, and go on behind the jump.
    Left,
    /// Some may go on with the next rule.
    Next,
}

/// What has been seen of one table.
pub(super) struct Walk<'a, S> {
    source: &'a mut S,
    table: &'a TableOf,
    known: HashMap<String, End>,
    rules: usize,
    /// Whether what accepts the established ends a chain: not where packets are not tracked, and so never are.
    tracks: bool,
    seen: Seen,
}

/// What a chain has.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The first rule that varies within a flow.
    pub(super) varying: Option<String>,
    /// Whether a rule has packets not tracked.
    pub(super) untracks: bool,
}

impl<'a, S: Source> Walk<'a, S> {
    pub(super) fn new(source: &'a mut S, table: &'a TableOf, tracks: bool) -> Self {
        Self { source, table, known: HashMap::new(), rules: 0, tracks, seen: Seen::default() }
    }

    /// What is behind `chain`.
    ///
    /// # Errors
    /// The rules cannot be read.
    pub(super) fn of(mut self, chain: &str) -> Result<Seen, NetlinkError> {
        self.end_of(chain)?;
        Ok(self.seen)
    }

    /// Each chain is read once. The kernel refuses one that jumps to itself (`nft_chain_validate`).
    fn end_of(&mut self, chain: &str) -> Result<End, NetlinkError> {
        if let Some(end) = self.known.get(chain) {
            return Ok(*end);
        }
        self.known.insert(chain.to_owned(), End::Returns);
        let rules = self.source.rules(self.table, chain)?;
        self.rules += rules.len();
        if self.rules > MOST {
            self.seen
                .varying
                .get_or_insert_with(|| format!("the table {} has more rules than are read", self.table.name));
        }
        let (mut end, mut have_left) = (End::Returns, false);
        for (place, rule) in (1..).zip(&rules) {
            if self.seen.varying.is_some() {
                break;
            }
            match self.follow(chain, place, &summary(rule, self.table.family))? {
                After::Next => {}
                After::Left => have_left = true,
                After::Accepted => {
                    end = if have_left { End::Returns } else { End::Accepted };
                    break;
                }
            }
        }
        self.known.insert(chain.to_owned(), end);
        Ok(end)
    }

    /// What a rule does to packets of an established flow.
    fn follow(&mut self, chain: &str, place: usize, rule: &Summary) -> Result<After, NetlinkError> {
        self.seen.untracks |= rule.untracks;
        if rule.is_for_others {
            return Ok(After::Next);
        }
        if let Some(by) = &rule.varies {
            return Ok(self.varies(chain, place, by));
        }
        let mut is_met = if self.tracks { rule.is_for_established } else { rule.is_for_all };
        let mut after = After::Next;
        for lookup in &rule.lookups {
            let set = self.source.set(self.table, &lookup.set)?;
            // Packets may take an element away.
            let lookup =
                &Lookup { of_state: lookup.of_state && !set.is_written_by_packets, ..lookup.clone() };
            let elements = self.elements(lookup)?;
            if let Some(by) = judged_by(rule, (lookup, &set), &elements) {
                return Ok(self.varies(chain, place, &by));
            }
            if lookup.decides {
                after = self.decided(lookup, &elements)?;
            } else {
                is_met |= elements.iter().any(|element| self.is_of(lookup, element, ESTABLISHED));
            }
        }
        let Some(verdict) = &rule.verdict else { return Ok(after) };
        match self.decide(verdict)? {
            After::Accepted if !is_met => Ok(After::Next),
            after => Ok(after),
        }
    }

    /// Keeps a rule in mind that varies within a flow.
    fn varies(&mut self, chain: &str, place: usize, by: &str) -> After {
        let table = &self.table.name;
        self.seen.varying =
            Some(format!("rule {place} of the chain {chain} of the table {table} asks for {by}"));
        After::Next
    }

    /// The elements of a set, where they matter.
    fn elements(&mut self, lookup: &Lookup) -> Result<Vec<Element>, NetlinkError> {
        if !lookup.decides && !lookup.of_state {
            return Ok(Vec::new());
        }
        let elements = self.source.elements(self.table, &lookup.set)?;
        self.rules += elements.len();
        Ok(elements)
    }

    /// Whether an element is for what is in this state, and stays so.
    fn is_of(&self, lookup: &Lookup, element: &Element, state: u32) -> bool {
        let has = |states: u32| states & state != 0;
        self.tracks && lookup.of_state && !element.expires && states::word(&element.key).is_some_and(has)
    }

    /// What a map of verdicts makes of packets of established flows.
    fn decided(&mut self, lookup: &Lookup, elements: &[Element]) -> Result<After, NetlinkError> {
        let mut of_all = After::Next;
        for element in elements {
            if lookup.of_state && states::word(&element.key) == Some(NEW) {
                continue;
            }
            let Some(verdict) = &element.verdict else { continue };
            match self.decide(verdict)? {
                After::Accepted if self.is_of(lookup, element, ESTABLISHED) => of_all = After::Accepted,
                After::Left if of_all != After::Accepted => of_all = After::Left,
                _ => {}
            }
        }
        Ok(of_all)
    }

    fn decide(&mut self, verdict: &Verdict) -> Result<After, NetlinkError> {
        let end = match &verdict.chain {
            Some(next) => self.end_of(next)?,
            None if verdict.code == libc::NF_ACCEPT => End::Accepted,
            None => End::Returns,
        };
        Ok(match (end, verdict.code) {
            (End::Accepted, _) => After::Accepted,
            (End::Returns, libc::NFT_GOTO | libc::NFT_RETURN) => After::Left,
            (End::Returns, _) => After::Next,
        })
    }
}

/// By what the elements of a set that a rule looks up judge each packet. A set says what each of its elements has; what one alone has is seen where
/// elements are read.
fn judged_by(rule: &Summary, (lookup, set): (&Lookup, &Set), elements: &[Element]) -> Option<String> {
    if !rule.acts && !lookup.decides {
        return None;
    }
    let mut kinds = set.expressions.iter().chain(elements.iter().flat_map(|element| &element.expressions));
    let kind = kinds.find(|kind| !is_silent_kind(kind))?;
    Some(format!("{kind} of elements of the set {}", lookup.set))
}
