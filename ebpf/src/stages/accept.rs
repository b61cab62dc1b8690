//! accept: which flows others' rules have let through.
//!
//! The kernel stays the truth about who may talk. Where somebody has rules for bridged packets ([`PORT_HEEDED`](crate::abi::PORT_HEEDED)), a flow is
//! opened by the kernel's way, through all hooks. What comes out of them at `to_container` is noted. Once a packet of each direction has, the flow
//! takes the fast path, each direction for a lease: then one of its packets goes by the kernel again. So a rule about who may talk is heeded within a
//! lease whoever has changed it, and connection tracking's entry lives on. Rules that judge the packets of one flow differently (rates, lengths,
//! payloads) see one of them a lease.
//!
//! A flow is that of two ports: whoever uses its addresses at another one is asked for as everybody is.
//!
//! Connection tracking checks a segment against those that it saw before, and has to be told not to before a TCP connection is accepted: the agent does,
//! for each one that lasts longer than a question and an answer ([`HEEDING_EACH_TCP`]), unless there is nothing to tell ([`HEEDING_TCP`]).
//!
//! What begins and ends a connection (SYN, FIN, RST) always goes by the kernel, and so does all but TCP and UDP, and what has IP options, extension
//! headers or a VLAN tag.

use crate::Tables;
use crate::abi::{
    ACCEPTED_LIBERAL, AcceptedFlow, CHECKED_SEGMENTS, HEEDING_EACH_TCP, HEEDING_TCP, Heeding,
    QUESTION_LIBERAL, QUESTION_TRANSLATION, Question, TRANSLATED_SEGMENTS,
};
use crate::stages::read_flow::Flow;
use crate::stages::share;
use crate::verdict::{PassReason, Stop};
use crate::wire::Protocol;

/// FIN, SYN and RST.
const EDGES: u8 = 0b111;

/// ACK, which every segment has that neither begins nor resets a connection (RFC 9293, section 3.10.7.4); connection tracking calls others invalid
/// (`tcp_error`, net/netfilter/nf_conntrack_proto_tcp.c).
const ACK: u8 = 1 << 4;

/// The most leases of a flow between two questions about it that were answered by nothing: a power of two.
const SELDOM: u16 = 32;

/// A packet of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its flow.
    pub flow: &'a Flow,
    /// The ports by which it comes and goes, by ifindex.
    pub ports: [u32; 2],
}

impl Asked<'_> {
    /// Which of [`AcceptedFlow::seen`].
    #[inline(always)]
    const fn direction(&self) -> usize {
        if self.flow.key.low.is(self.flow.source) { 0 } else { 1 }
    }

    /// Whether it begins or ends a connection.
    #[inline(always)]
    pub const fn is_edge(&self) -> bool {
        is_edge(self.flow.flags)
    }

    /// As [`AcceptedFlow::ends`].
    #[inline(always)]
    const fn ends(&self) -> [u32; 2] {
        let [from, to] = self.ports;
        if self.direction() == 0 { [from, to] } else { [to, from] }
    }

    /// Whether an entry is of this flow.
    #[inline(always)]
    fn is_noted_as(&self, flow: &AcceptedFlow) -> bool {
        let ([low, high], [one, other]) = (self.ends(), flow.ends);
        low == one && high == other
    }

    /// Whether connection tracking has to be liberal of this flow first.
    #[inline(always)]
    fn needs_liberal(&self, heeding: &Heeding) -> bool {
        Protocol(self.flow.key.protocol) == Protocol::TCP && heeding.flags & HEEDING_TCP == 0
    }

    /// Whether such flows may be accepted.
    #[inline(always)]
    fn is_acceptable(&self, heeding: &Heeding) -> bool {
        if !self.flow.is_plain {
            return false;
        }
        match Protocol(self.flow.key.protocol) {
            Protocol::UDP => true,
            Protocol::TCP => {
                heeding.flags & (HEEDING_TCP | HEEDING_EACH_TCP) != 0
                    && self.flow.flags & ACK != 0
                    && !self.is_edge()
            }
            _ => false,
        }
    }
}

/// Whether a packet with these flags of TCP begins or ends a connection.
#[inline(always)]
pub const fn is_edge(flags: u8) -> bool {
    flags & EDGES != 0
}

/// Lets a packet on whose flow is accepted, and whose direction's lease lasts.
///
/// # Errors
/// Passes any other.
#[inline(always)]
pub fn check<T: Tables>(asked: &Asked<'_>, tables: &T) -> Result<(), Stop> {
    if is_accepted(asked, tables) { Ok(()) } else { Err(Stop::Pass(PassReason::Unaccepted)) }
}

#[inline(always)]
fn is_accepted<T: Tables>(asked: &Asked<'_>, tables: &T) -> bool {
    has_lease(asked, tables, |flow, heeding| {
        let [one, other] = flow.seen;
        let is_unchecked = !asked.needs_liberal(heeding) || flow.flags & ACCEPTED_LIBERAL != 0;
        one != 0 && other != 0 && is_unchecked
    })
}

/// The same where each direction of a connection is noted by itself, as it leaves: whether the lease of this one lasts.
#[inline(always)]
pub fn is_accepted_one_way<T: Tables>(asked: &Asked<'_>, tables: &T) -> bool {
    has_lease(asked, tables, |_, _| true)
}

/// Whether a packet comes and goes by the ports by which its flow was noted last, if it was.
#[inline(always)]
pub fn is_as_noted<T: Tables>(asked: &Asked<'_>, tables: &T) -> bool {
    tables.accepted_flow(&asked.flow.key).is_none_or(|flow| asked.is_noted_as(&flow))
}

/// Whether the lease of a packet's direction lasts, where what is known of its flow `suffices`.
#[inline(always)]
fn has_lease<T: Tables>(
    asked: &Asked<'_>,
    tables: &T,
    suffices: impl FnOnce(&AcceptedFlow, &Heeding) -> bool,
) -> bool {
    let Some(heeding) = tables.heeding() else { return false };
    if !asked.is_acceptable(&heeding) {
        return false;
    }
    let Some(flow) = tables.accepted_flow(&asked.flow.key) else { return false };
    if flow.generation != heeding.generation || !asked.is_noted_as(&flow) || !suffices(&flow, &heeding) {
        return false;
    }
    let [one, other] = flow.seen;
    let seen = if asked.direction() == 0 { one } else { other };
    seen != 0 && tables.boot_time().saturating_sub(seen) < heeding.lease
}

/// What the agent is asked for once a flow has had a few packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// That connection tracking is liberal of a TCP connection that is answered.
    LiberalTracking,
    /// That the programs know what becomes of the connection.
    Translation,
    /// Nothing.
    Nothing,
}

impl Wanted {
    /// As [`Question::wanted`].
    #[inline(always)]
    const fn code(self) -> u32 {
        match self {
            Self::Translation => QUESTION_TRANSLATION,
            Self::LiberalTracking | Self::Nothing => QUESTION_LIBERAL,
        }
    }
}

/// Notes a packet that has come out of all hooks, sent by the container with the counter slot `slot`. An end of a connection forgets what was noted.
#[inline(always)]
pub fn note<T: Tables>(asked: &Asked<'_>, slot: u32, tables: &T) {
    note_and_ask(asked, slot, Wanted::LiberalTracking, tables);
}

/// The same, of which the agent is asked for something else.
#[inline(always)]
pub fn note_and_ask<T: Tables>(asked: &Asked<'_>, slot: u32, wanted: Wanted, tables: &T) {
    let Some(heeding) = tables.heeding() else { return };
    if asked.is_edge() {
        tables.forget_accepted_flow(&asked.flow.key);
    }
    if !asked.is_acceptable(&heeding) {
        return;
    }
    let key = &asked.flow.key;
    let now = tables.boot_time();
    let known = tables.accepted_flow(key).filter(|flow| asked.is_noted_as(flow));
    if known.is_none() && !share::charge_neighbor(slot, now, tables) {
        return;
    }
    let known = known.unwrap_or_default();
    // What connection tracking does not mind outlasts a change of rules.
    let AcceptedFlow { flags, mut checked, mut seen, .. } = known;
    if known.generation != heeding.generation {
        // By other rules, or an agent that has begun since, another answer may follow.
        (seen, checked) = ([0; 2], checked.min(first_asked(wanted.code())));
    }
    let [one, other] = seen;
    let (before, answered) = if asked.direction() == 0 { (one, other) } else { (other, one) };
    let is_noted = before != 0 && now.saturating_sub(before) < heeding.lease;
    let is_wanted = match wanted {
        Wanted::LiberalTracking => answered != 0 && asked.needs_liberal(&heeding),
        Wanted::Translation => true,
        Wanted::Nothing => false,
    };
    if is_wanted && flags & ACCEPTED_LIBERAL == 0 {
        checked = ask(&Question { flow: *key, wanted: wanted.code() }, (checked, is_noted), tables);
    }
    if is_noted {
        return;
    }
    let seen = if asked.direction() == 0 { [now, other] } else { [one, now] };
    let flow = AcceptedFlow { seen, ends: asked.ends(), generation: heeding.generation, flags, checked };
    tables.accept_flow(key, &flow);
}

/// Asks the agent about a connection once it has had a few packets, and then ever more seldom. Returns what has been counted, for a lease that begins.
#[inline(always)]
fn ask<T: Tables>(question: &Question, (checked, is_noted): (u16, bool), tables: &T) -> u16 {
    let first = first_asked(question.wanted);
    let (is_due, counted) = if is_noted {
        let is_next = checked < first;
        (is_next && tables.count_checked(&question.flow) == Some(first), checked)
    } else {
        asked_again(checked, first)
    };
    // Verifier: one call for both.
    if is_due {
        tables.ask_agent(question);
    }
    counted
}

/// [`AcceptedFlow::checked`] from which on the agent is asked.
#[inline(always)]
const fn first_asked(wanted: u32) -> u16 {
    if wanted == QUESTION_TRANSLATION { TRANSLATED_SEGMENTS } else { CHECKED_SEGMENTS }
}

/// Whether the agent is asked again as a lease begins, which is counted: of the leases since the first question the first, the second, the fourth and so on,
/// and at last each [`SELDOM`].
#[inline(always)]
const fn asked_again(checked: u16, first: u16) -> (bool, u16) {
    if checked < first {
        return (false, checked);
    }
    let leases = checked - first + 1;
    let counted = if leases < 2 * SELDOM { checked + 1 } else { first + SELDOM };
    (leases.is_power_of_two(), counted)
}
