//! Goes through the rules of a chain.

use std::collections::HashMap;

use nix::libc;
use shunt_netlink::NetlinkError;
use shunt_netlink::nf_tables::{Element, Expression, TableOf, Verdict};

use super::super::reading::attributes::{
    NFTA_IMMEDIATE_DATA, NFTA_IMMEDIATE_DREG, NFTA_LOOKUP_DREG, NFTA_LOOKUP_SET, NFTA_MATCH_NAME,
    NFTA_NAT_TYPE,
};
use super::super::reading::expression::effect;
use super::super::reading::local::is_for_node;
use super::super::reading::marks;
use super::super::reading::source::Source;
use super::super::reading::states::{self, INVALID};
use super::addresses::Addresses;
use super::bridges::{self, Bridges};
use super::confinement::{Asked, End, asked, of_elements};
use super::harm::Harm;
use super::leaving::{Leaving, leaving};

/// Rules and elements that are read at most, of one chain at a hook. One beyond may do anything.
const MOST: usize = 50_000;

/// The target of iptables that changes what begins a connection.
const CLAMPS: &str = "TCPMSS";

/// Those that translate the source, and `NFT_NAT_SNAT`.
const MASQUERADING: [&str; 2] = ["MASQUERADE", "SNAT"];
const SOURCE: u32 = 0;

/// What lets what passes between some addresses leave: more of one chain are not known to.
const MOST_BETWEEN: usize = 64;

/// Where a chain is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    pub(super) hook: u32,
    /// Whether what comes here has been tracked.
    pub(super) is_tracked: bool,
    pub(super) bridges: &'a Bridges,
}

/// What has been read of one table.
pub(super) struct Reader<'a, S> {
    source: &'a mut S,
    table: &'a TableOf,
    known: HashMap<String, Harm>,
    read: usize,
    site: Site<'a>,
}

impl<'a, S: Source> Reader<'a, S> {
    pub(super) fn new(source: &'a mut S, table: &'a TableOf, site: Site<'a>) -> Self {
        Self { source, table, known: HashMap::new(), read: 0, site }
    }

    /// What `chain` does. Each is read once; the kernel refuses one that jumps to itself (`nft_chain_validate`).
    ///
    /// # Errors
    /// The rules cannot be read.
    pub(super) fn of(&mut self, chain: &str) -> Result<Harm, NetlinkError> {
        if let Some(harm) = self.known.get(chain) {
            return Ok(harm.clone());
        }
        self.known.insert(chain.to_owned(), Harm::default());
        let rules = self.source.rules(self.table, chain)?;
        self.read += rules.len();
        let (mut harm, mut left) = (Harm::default(), Left::default());
        for (place, rule) in (1..).zip(&rules) {
            if self.read > MOST {
                harm.by = Some(format!("the table {} has more rules than are read", self.table.name));
            }
            if harm.by.is_some() {
                break;
            }
            let mut done = self.by_rule(rule)?;
            if self.is_of_ip() {
                done = left.spare(done);
            }
            done.by = done.by.map(|by| match by.is_empty() {
                true => format!("rule {place} of the chain {chain} of the table {}", self.table.name),
                false => by,
            });
            harm.add(&done);
            match leaving(rule, self.table.family) {
                Some(Leaving::Unmarked) => {
                    harm.add(&Harm::by(String::new()).for_marked());
                    break;
                }
                Some(Leaving::To(asked)) => left.to.add(&self.lasting(asked)?),
                Some(Leaving::Between(from, to)) => {
                    let from = self.lasting(from)?;
                    let to = to.map_or_else(|| Ok(Addresses::every()), |to| self.lasting(to))?;
                    left.between.push((from, to));
                }
                None => {}
            }
        }
        self.known.insert(chain.to_owned(), harm.clone());
        Ok(harm)
    }

    /// What one rule does. It asks and acts from left to right.
    fn by_rule(&mut self, rule: &[Expression]) -> Result<Harm, NetlinkError> {
        let (mut done, mut first) = (Harm::default(), rule.len());
        for (at, expression) in rule.iter().enumerate() {
            done.add(&self.by_expression(expression, &rule[..at])?);
            if done.is_any() {
                first = first.min(at);
            }
        }
        if !done.is_any() || self.site.is_tracked && is_for_invalid(&rule[..first]) {
            return Ok(done.marked_part());
        }
        let is_for_marked = |at| marks::asked(&rule[at..first]).is_some_and(|mark| !mark.is_for_unmarked);
        if (0..first).any(is_for_marked) {
            return Ok(done.for_marked());
        }
        if is_for_node(&rule[..first]) {
            return Ok(done.for_node());
        }
        if self.is_elsewhere(&rule[..=first])? {
            return Ok(done.for_elsewhere());
        }
        self.confined(done, &rule[..=first])
    }

    /// Whether only packets meet the end of what is asked that pass by other interfaces than the bridges.
    fn is_elsewhere(&mut self, asking: &[Expression]) -> Result<bool, NetlinkError> {
        let Site { hook, bridges, .. } = self.site;
        let asked = asking.windows(2).filter_map(|pair| bridges.asked(pair, hook));
        for (by, asked) in asked.filter(|_| self.is_of_ip()).collect::<Vec<_>>() {
            let has_any = match asked {
                bridges::Asked::Compared { value, is_equal } => bridges.has_any(by, &value, is_equal),
                bridges::Asked::In(set) => {
                    self.elements(&set)?.is_none_or(|elements| bridges.has_any_of(by, &elements))
                }
            };
            if !has_any {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same, done only to what has the addresses for which the rule asks.
    fn confined(&mut self, done: Harm, asking: &[Expression]) -> Result<Harm, NetlinkError> {
        let mut done = done;
        if let Some(to) = self.addresses(asked(asking, self.table.family, End::Destination))? {
            done = done.confined_to(&to);
        }
        if let Some(from) = self.addresses(asked(asking, self.table.family, End::Source))? {
            done = done.confined_from(&from);
        }
        Ok(done)
    }

    /// The addresses that are asked for; none where they may be any.
    fn addresses(&mut self, asked: Option<Asked>) -> Result<Option<Addresses>, NetlinkError> {
        Ok(match asked {
            Some(Asked::Of(addresses)) => Some(addresses),
            Some(Asked::In(set, length)) => {
                self.elements(&set)?.and_then(|elements| of_elements(&elements, length))
            }
            None => None,
        })
    }

    /// Those of them that stay what is asked for, until somebody changes the rules.
    fn lasting(&mut self, asked: Asked) -> Result<Addresses, NetlinkError> {
        if let Asked::In(set, length) = &asked {
            let elements = self.elements(set)?.unwrap_or_default();
            // A key of zeros may stand for all addresses, or for one.
            let is_lasting = |element: &Element| {
                let is_known = element.ends_interval || element.key.iter().any(|byte| *byte != 0);
                element.key.len() == *length && !element.expires && is_known
            };
            if !elements.iter().all(is_lasting) {
                return Ok(Addresses::default());
            }
        }
        Ok(self.addresses(Some(asked))?.unwrap_or_default())
    }

    /// All addresses that what comes here may have.
    fn every(&self) -> Addresses {
        match i32::from(self.table.family) {
            libc::NFPROTO_IPV4 => Addresses::every_of(4),
            libc::NFPROTO_IPV6 => Addresses::every_of(16),
            _ => Addresses::every(),
        }
    }

    /// Whether all that comes here is of IP.
    fn is_of_ip(&self) -> bool {
        let family = i32::from(self.table.family);
        [libc::NFPROTO_INET, libc::NFPROTO_IPV4, libc::NFPROTO_IPV6].contains(&family)
    }

    /// What an expression does behind those that were `asked`.
    fn by_expression(&mut self, expression: &Expression, asked: &[Expression]) -> Result<Harm, NetlinkError> {
        let decides = |kind| expression.number(kind) == Some(libc::NFT_REG_VERDICT as u32);
        match expression.name.as_str() {
            "immediate" if decides(NFTA_IMMEDIATE_DREG) => match expression.verdict(NFTA_IMMEDIATE_DATA) {
                Some(verdict) => self.by_verdict(&verdict),
                None => Ok(harm()),
            },
            "lookup" if decides(NFTA_LOOKUP_DREG) => {
                let Some(map) = expression.text(NFTA_LOOKUP_SET) else { return Ok(harm()) };
                let Some(elements) = self.elements(&map)? else { return Ok(harm()) };
                let mut done = Harm::default();
                for verdict in elements.into_iter().filter_map(|element| element.verdict) {
                    done.add(&self.by_verdict(&verdict)?);
                }
                Ok(done)
            }
            "target" if expression.text(NFTA_MATCH_NAME).as_deref() == Some(CLAMPS) => Ok(harm()),
            _ if translates_source(expression) => Ok(Harm::masquerading(&self.every())),
            _ if effect(expression, asked, self.table.family).acts => Ok(harm()),
            _ => Ok(Harm::default()),
        }
    }

    fn by_verdict(&mut self, verdict: &Verdict) -> Result<Harm, NetlinkError> {
        match (&verdict.chain, verdict.code) {
            (Some(next), _) => self.of(next),
            (None, libc::NF_ACCEPT | libc::NFT_CONTINUE | libc::NFT_RETURN) => Ok(Harm::default()),
            (None, _) => Ok(harm()),
        }
    }

    /// The elements of a set; none where packets write some, which nobody tells of.
    fn elements(&mut self, set: &str) -> Result<Option<Vec<Element>>, NetlinkError> {
        if self.source.set(self.table, set)?.is_written_by_packets {
            return Ok(None);
        }
        let elements = self.source.elements(self.table, set)?;
        self.read += elements.len();
        Ok(Some(elements))
    }
}

/// What has left a chain.
#[derive(Debug, Default)]
struct Left {
    /// What is sent to these.
    to: Addresses,
    /// What is sent from some to others.
    between: Vec<(Addresses, Addresses)>,
}

impl Left {
    /// What is done behind it.
    fn spare(&self, done: Harm) -> Harm {
        let done = if self.to.is_empty() { done } else { done.without(&self.to) };
        self.between.iter().take(MOST_BETWEEN).fold(done, Harm::without_between)
    }
}

/// Whether only packets meet the end of what is asked that connection tracking calls invalid.
fn is_for_invalid(asked: &[Expression]) -> bool {
    let states = (0..asked.len()).filter_map(|at| states::asked(&asked[at..]));
    states.into_iter().any(|asked| asked.states & !INVALID == 0)
}

/// Whether it translates the source alone.
fn translates_source(expression: &Expression) -> bool {
    match expression.name.as_str() {
        "masq" => true,
        "nat" => expression.number(NFTA_NAT_TYPE) == Some(SOURCE),
        "target" => expression.text(NFTA_MATCH_NAME).is_some_and(|name| MASQUERADING.contains(&&*name)),
        _ => false,
    }
}

/// The harm of a rule that is being read.
fn harm() -> Harm {
    Harm::by(String::new())
}
