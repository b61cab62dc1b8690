//! Goes through the rules that packets of an established flow meet.

use std::collections::HashMap;

use nix::libc;
use shunt_netlink::NetlinkError;
use shunt_netlink::nf_tables::{Element, TableOf};

use super::rule::{Lookup, Summary, summary};
use super::source::Source;
use super::states::{self, ESTABLISHED, NEW};

/// Rules that are read at most, of one chain at a hook. A rule beyond may do anything.
const MOST: usize = 20_000;

/// What becomes of a packet of an established flow at the end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The chain has accepted it, whoever it is.
    Accepted,
    /// It goes on behind the jump.
    Returns,
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
        let mut end = End::Returns;
        for (place, rule) in (1..).zip(&rules) {
            if self.seen.varying.is_some() || end == End::Accepted {
                break;
            }
            end = self.follow(chain, place, &summary(rule, self.table.family))?;
        }
        self.known.insert(chain.to_owned(), end);
        Ok(end)
    }

    /// What a rule does to packets of an established flow.
    fn follow(&mut self, chain: &str, place: usize, rule: &Summary) -> Result<End, NetlinkError> {
        self.seen.untracks |= rule.untracks;
        if rule.is_for_new {
            return Ok(End::Returns);
        }
        if let Some(by) = &rule.varies {
            self.seen.varying = Some(format!(
                "rule {place} of the chain {chain} of the table {} asks for {by}",
                self.table.name
            ));
            return Ok(End::Returns);
        }
        let mut is_met = if self.tracks { rule.is_for_established } else { rule.is_for_all };
        for lookup in &rule.lookups {
            match self.follow_lookup(lookup)? {
                Some(End::Accepted) => return Ok(End::Accepted),
                Some(End::Returns) => is_met |= rule.verdict.is_some(),
                None => {}
            }
        }
        let Some(verdict) = &rule.verdict else { return Ok(End::Returns) };
        let end = match &verdict.chain {
            Some(next) => self.end_of(next)?,
            None if verdict.code == libc::NF_ACCEPT => End::Accepted,
            None => End::Returns,
        };
        Ok(if is_met { end } else { End::Returns })
    }

    /// What a set makes of packets of an established flow: none where it says nothing of all of them.
    fn follow_lookup(&mut self, lookup: &Lookup) -> Result<Option<End>, NetlinkError> {
        let of_state = lookup.of_state && self.tracks;
        if !lookup.decides && !of_state {
            return Ok(None);
        }
        let elements = self.source.elements(self.table, &lookup.set)?;
        self.rules += elements.len();
        let is_of = |element: &Element, state: u32| {
            of_state && states::word(&element.key).is_some_and(|states| states & state != 0)
        };
        if !lookup.decides {
            return Ok(elements.iter().any(|element| is_of(element, ESTABLISHED)).then_some(End::Returns));
        }
        let mut of_all = None;
        for element in &elements {
            if lookup.of_state && states::word(&element.key) == Some(NEW) {
                continue;
            }
            let Some(verdict) = &element.verdict else { continue };
            let end = match &verdict.chain {
                Some(next) => self.end_of(next)?,
                None if verdict.code == libc::NF_ACCEPT => End::Accepted,
                None => End::Returns,
            };
            if is_of(element, ESTABLISHED) && end == End::Accepted {
                of_all = Some(End::Accepted);
            }
        }
        Ok(of_all)
    }
}
