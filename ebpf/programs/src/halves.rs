//! Programs that are functions, one after the other: each alone nearly fills the stack.
//!
//! Verifier: all frames of a chain of calls are 512 bytes at most, each rounded up to 32. Whoever calls these keeps nothing.
//! What one plans for the next is in `PLANS`: both run on one CPU, and no other classifier interrupts them there.

use aya_ebpf::bindings::{__sk_buff, TC_ACT_UNSPEC};
use aya_ebpf::programs::TcContext;
use shunt_dataplane::errors::{self, Plan};
use shunt_dataplane::nat::{frag_needed, fragments, masquerade};
use shunt_dataplane::stages::neighbor_proxy;
use shunt_dataplane::stages::port::Missing;
use shunt_dataplane::wire::packet::Packet as _;
use shunt_dataplane::{DropReason, PassReason, Verdict, journey, vlan};

use crate::action;
use crate::context::{FRAMED, Skb};
use crate::kernel_tables::KernelTables;
use crate::maps::{BEGINNINGS, PLANS};
use crate::missing;
use crate::ports_note::PortsNote;

/// The action of a function that leaves it to the next one: none of the kernel's.
const ON: i32 = i32::MIN;

/// The same, of one that leaves it to those for masqueraded connections.
const BEGIN: i32 = i32::MIN + 1;
const RETURN: i32 = i32::MIN + 2;

/// The same, of one that has dropped a packet for its size: its sender is told.
const BIG: i32 = i32::MIN + 3;

/// `from_wire`, and `from_tunnel`.
#[inline(always)]
pub(crate) fn from_wire<const KIND: u8>(skb: *mut __sk_buff) -> i32 {
    PortsNote::clear(skb);
    let action = match request::<KIND>(skb) {
        ON => match fragment_inwards::<KIND>(skb) {
            ON => match plan_inwards::<KIND>(skb) {
                ON => error_inwards::<KIND>(skb),
                action => action,
            },
            action => action,
        },
        RETURN => returns::<KIND>(skb),
        action => heeded(skb, action),
    };
    let action = if action == BIG { refuse::<KIND>(skb) } else { action };
    action::said(skb, action)
}

/// `from_mapped`.
#[inline(always)]
pub(crate) fn from_mapped(skb: *mut __sk_buff) -> i32 {
    PortsNote::clear(skb);
    let action = match reply(skb) {
        ON => match fragment_outwards(skb) {
            ON => match plan_outwards(skb) {
                ON => error_outwards(skb),
                action => action,
            },
            action => action,
        },
        BEGIN => match begin(skb) {
            ON => begun(skb),
            action => action,
        },
        action => heeded(skb, action),
    };
    if action != TC_ACT_UNSPEC {
        // As `guard::unless_left`.
        Skb::new(TcContext::new(skb)).take_checked();
    }
    action::said(skb, action)
}

/// The action, with what the packet's checksum still lacks made good.
#[inline(always)]
fn heeded(skb: *mut __sk_buff, action: i32) -> i32 {
    PortsNote::put_by(skb, action);
    if PortsNote::is_there(skb) {
        mend_ports(skb);
    }
    PortsNote::fetch(skb)
}

#[inline(never)]
fn mend_ports(skb: *mut __sk_buff) -> i32 {
    PortsNote::heed(skb);
    0
}

/// `from_container` of a restricted port.
#[inline(always)]
pub(crate) fn from_restricted(skb: *mut __sk_buff) -> i32 {
    match sent(skb) {
        ON => answer_container(skb),
        action => action,
    }
}

/// `from_container` of a port in VLANs.
#[inline(never)]
pub(crate) fn from_member(skb: *mut __sk_buff) -> i32 {
    first::<FRAMED>(skb, vlan::from_member)
}

#[inline(never)]
fn sent(skb: *mut __sk_buff) -> i32 {
    first::<FRAMED>(skb, |packet, here, tables| journey::from_container(packet, here, Missing::Drop, tables))
}

/// What `from_container` makes of a question.
#[inline(never)]
pub(crate) fn answer_container(skb: *mut __sk_buff) -> i32 {
    first::<FRAMED>(skb, |packet, here, tables| {
        neighbor_proxy::from_container(packet, here, missing(), tables)
    })
}

/// What `from_host` makes of one.
#[inline(never)]
pub(crate) fn answer_host(skb: *mut __sk_buff) -> i32 {
    first::<FRAMED>(skb, neighbor_proxy::from_host)
}

#[inline(never)]
fn request<const KIND: u8>(skb: *mut __sk_buff) -> i32 {
    arrived::<KIND>(skb, journey::from_wire)
}

#[inline(never)]
fn reply(skb: *mut __sk_buff) -> i32 {
    first::<FRAMED>(skb, journey::from_mapped)
}

#[inline(never)]
fn fragment_inwards<const KIND: u8>(skb: *mut __sk_buff) -> i32 {
    if_any::<KIND>(skb, fragments::from_wire)
}

#[inline(never)]
fn fragment_outwards(skb: *mut __sk_buff) -> i32 {
    if_any::<FRAMED>(skb, fragments::from_mapped)
}

#[inline(never)]
fn returns<const KIND: u8>(skb: *mut __sk_buff) -> i32 {
    arrived::<KIND>(skb, masquerade::returns)
}

#[inline(never)]
fn refuse<const KIND: u8>(skb: *mut __sk_buff) -> i32 {
    first::<KIND>(skb, frag_needed::tell)
}

#[inline(never)]
fn begin(skb: *mut __sk_buff) -> i32 {
    let mut packet = Skb::new(TcContext::new(skb));
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let Some(plan) = BEGINNINGS.get_ptr_mut(0) else { return TC_ACT_UNSPEC };
    // SAFETY: as in `planned`.
    match masquerade::begin(&mut packet, here, &tables, unsafe { &mut *plan }) {
        None => ON,
        Some(verdict) => action::take_silently(&packet, verdict),
    }
}

#[inline(never)]
fn begun(skb: *mut __sk_buff) -> i32 {
    let mut packet = Skb::new(TcContext::new(skb));
    let tables = KernelTables::new(&packet);
    let Some(plan) = BEGINNINGS.get_ptr(0) else { return TC_ACT_UNSPEC };
    // SAFETY: as in `planned`; `begin` has written it.
    let verdict = masquerade::done(&mut packet, &tables, unsafe { &*plan });
    action::take_silently(&packet, verdict)
}

#[inline(never)]
fn plan_inwards<const KIND: u8>(skb: *mut __sk_buff) -> i32 {
    planned::<KIND>(skb, errors::plan_from_wire)
}

#[inline(never)]
fn plan_outwards(skb: *mut __sk_buff) -> i32 {
    planned::<FRAMED>(skb, errors::plan_from_mapped)
}

#[inline(never)]
fn error_inwards<const KIND: u8>(skb: *mut __sk_buff) -> i32 {
    done::<KIND>(skb, errors::from_wire)
}

#[inline(never)]
fn error_outwards(skb: *mut __sk_buff) -> i32 {
    done::<FRAMED>(skb, |packet, _, tables, plan| errors::from_mapped(packet, tables, plan))
}

#[inline(always)]
fn first<const KIND: u8>(
    skb: *mut __sk_buff,
    journey: impl FnOnce(&mut Skb<KIND>, u32, &KernelTables) -> Verdict,
) -> i32 {
    let mut packet = Skb::of(TcContext::new(skb));
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    match journey(&mut packet, here, &tables) {
        Verdict::Pass(PassReason::MayQuote | PassReason::MayAsk) => ON,
        Verdict::Pass(PassReason::MayBegin) => BEGIN,
        verdict => action::take_silently(&packet, verdict),
    }
}

/// The same of what came from outside.
#[inline(always)]
fn arrived<const KIND: u8>(
    skb: *mut __sk_buff,
    journey: impl FnOnce(&mut Skb<KIND>, u32, &KernelTables) -> Verdict,
) -> i32 {
    let mut packet = Skb::of(TcContext::new(skb));
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    match journey(&mut packet, here, &tables) {
        Verdict::Pass(PassReason::MayQuote) => ON,
        Verdict::Pass(PassReason::MayReturn) => RETURN,
        Verdict::Drop(DropReason::TooBig) => BIG,
        verdict => action::take_silently(&packet, verdict),
    }
}

/// On, where a journey is for other packets.
#[inline(always)]
fn if_any<const KIND: u8>(
    skb: *mut __sk_buff,
    journey: impl FnOnce(&mut Skb<KIND>, u32, &KernelTables) -> Option<Verdict>,
) -> i32 {
    let mut packet = Skb::of(TcContext::new(skb));
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    match journey(&mut packet, here, &tables) {
        None => ON,
        Some(verdict) => action::take_silently(&packet, verdict),
    }
}

#[inline(always)]
fn planned<const KIND: u8>(
    skb: *mut __sk_buff,
    journey: impl FnOnce(&mut Skb<KIND>, u32, &KernelTables, &mut Plan) -> Option<Verdict>,
) -> i32 {
    let mut packet = Skb::of(TcContext::new(skb));
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    // An array has the entry; the verifier wants to see it.
    let Some(plan) = PLANS.get_ptr_mut(0) else { return TC_ACT_UNSPEC };
    // SAFETY: the pointer is to this CPU's value, which nobody else has while this program runs; zeros make a `Plan`.
    match journey(&mut packet, here, &tables, unsafe { &mut *plan }) {
        None => ON,
        Some(verdict) => action::take_silently(&packet, verdict),
    }
}

#[inline(always)]
fn done<const KIND: u8>(
    skb: *mut __sk_buff,
    journey: impl FnOnce(&mut Skb<KIND>, u32, &KernelTables, &Plan) -> Verdict,
) -> i32 {
    let mut packet = Skb::of(TcContext::new(skb));
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let Some(plan) = PLANS.get_ptr(0) else { return TC_ACT_UNSPEC };
    // SAFETY: as in `planned`, which has written it.
    let verdict = journey(&mut packet, here, &tables, unsafe { &*plan });
    action::take_silently(&packet, verdict)
}
