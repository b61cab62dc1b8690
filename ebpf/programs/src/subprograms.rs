//! The parts of the long programs as kernel functions: each alone nearly fills the stack.
//!
//! Verifier: the frames of a chain of calls are 512 bytes at most, each rounded up to 32. A caller of these keeps nothing on its own.
//! What one part plans for the next is in a per-CPU map: both run on one CPU, where no other classifier interrupts them.

use aya_ebpf::bindings::{__sk_buff, TC_ACT_UNSPEC};
use aya_ebpf::programs::TcContext;
use shunt_dataplane::abi::watch::WatchedProgram;
use shunt_dataplane::programs::{
    Next, from_container, from_host, from_mapped, from_member, from_wire, moved, own_return, to_wire, tracked,
};
use shunt_dataplane::stages::port::Missing;
use shunt_dataplane::wire::Packet as _;
use shunt_dataplane::{Verdict, nat};

use crate::action;
use crate::kernel_tables::KernelTables;
use crate::maps::{BEGIN_PLANS, DNAT_PLANS, HANDED_ON, ICMP_PLANS};
use crate::sctp_note::SctpNote;
use crate::skb::{FRAMED, Skb};
use crate::{RESTRICTED, missing};

/// What a function returns where another part goes on: none of the kernel's actions.
const HEAR: i32 = i32::MIN + 5;
const ANSWER: i32 = i32::MIN;
const BEGIN: i32 = i32::MIN + 1;
const RETURN: i32 = i32::MIN + 2;
const ICMP_ERROR: i32 = i32::MIN + 3;
const FRAG_NEEDED: i32 = i32::MIN + 4;
const MOVED: i32 = i32::MIN + 6;
const TRANSLATE: i32 = i32::MIN + 7;
const OWN_RETURN: i32 = i32::MIN + 8;
const TRACKED: i32 = i32::MIN + 9;
const SUPPRESS: i32 = i32::MIN + 10;

/// What a part returns.
trait End {
    /// Carries it out, or returns which part goes on.
    fn action<const KIND: u8>(self, packet: &Skb<KIND>) -> i32;
}

impl End for Verdict {
    #[inline(always)]
    fn action<const KIND: u8>(self, packet: &Skb<KIND>) -> i32 {
        action::take_silently(packet, self)
    }
}

impl End for Next {
    #[inline(always)]
    fn action<const KIND: u8>(self, packet: &Skb<KIND>) -> i32 {
        match self {
            Self::Done(verdict) => action::take_silently(packet, verdict),
            Self::Suppress => SUPPRESS,
            Self::Hear => HEAR,
            Self::Answer => ANSWER,
            // `from_mapped` is another program, behind this one.
            Self::Reply => action::take_silently(packet, self.verdict()),
            Self::Translate => TRANSLATE,
            Self::Begin => BEGIN,
            Self::Moved => MOVED,
            Self::Return => RETURN,
            Self::OwnReturn => OWN_RETURN,
            Self::Tracked => TRACKED,
            Self::IcmpError => ICMP_ERROR,
            Self::FragNeeded => FRAG_NEEDED,
        }
    }
}

/// Makes a part a function: `NAME = PART`, called with the packet, the interface and the tables. `plans MAP` also hands the part this
/// CPU's value of a map, for the plan that it writes; `does MAP` hands it the plan.
macro_rules! subprograms {
    ($($(#[$doc:meta])* $name:ident = $part:expr $(, plans $written:ident)? $(, does $read:ident)?;)*) => { $(
        $(#[$doc])*
        #[inline(never)]
        pub(crate) fn $name<const KIND: u8>(skb: *mut __sk_buff) -> i32 {
            let mut packet = Skb::<KIND>::of(TcContext::new(skb));
            let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
            $(
                let write = || {
                    let plan = $written.get_ptr_mut(0)?;
                    // SAFETY: the pointer is to this CPU's value, which nobody else has while this program runs; zeros make a plan.
                    Some(unsafe { &mut *plan })
                };
            )?
            $(
                // An array has the entry; the verifier wants to see it.
                let Some(read) = $read.get_ptr(0) else { return TC_ACT_UNSPEC };
                // SAFETY: as above; the part before has written it.
                let read = unsafe { &*read };
            )?
            let end = ($part)(&mut packet, here, &tables $(, handed!(write $written))? $(, handed!(read $read))?);
            end.action(&packet)
        }
    )* };
}

/// Repeats `plan` where a map is named.
macro_rules! handed {
    ($plan:ident $map:ident) => {
        $plan
    };
}

subprograms! {
    /// `from_container` of an open port.
    forward_open = |packet: &mut _, here, tables: &_| {
        from_container::forward(packet, here, Missing::Pass, tables)
    };
    /// `from_container` of a restricted port.
    forward_restricted = |packet: &mut _, here, tables: &_| {
        from_container::forward(packet, here, Missing::Drop, tables)
    };
    /// `from_container` of a port in VLANs.
    forward_member = from_member::run;
    /// What `from_container` suppresses.
    suppress_container = |packet: &mut _, here, tables: &_| {
        from_container::suppress(packet, here, missing(), tables)
    };
    /// The announcements of `from_container`.
    hear_container = |packet: &mut _, here, tables: &_| {
        from_container::hear(packet, here, missing(), tables)
    };
    /// The neighbour proxy of `from_container`.
    answer_container = |packet: &mut _, here, tables: &_| {
        from_container::answer(packet, here, missing(), tables)
    };
    /// `from_host` without its neighbour proxy.
    forward_host = from_host::forward;
    /// What `from_host` notes for that.
    note_host = from_host::note;
    /// The neighbour proxy of `from_host`.
    answer_host = from_host::answer;

    dnat = from_wire::dnat, plans DNAT_PLANS;
    moved_dnat = moved::follow, does DNAT_PLANS;
    begin_moved_dnat = moved::begin, does DNAT_PLANS;
    begin_dnat = from_wire::begin, does DNAT_PLANS;
    fragment_inwards = from_wire::later_fragment;
    plan_error_inwards = from_wire::plan_icmp_error, plans ICMP_PLANS;
    error_inwards = from_wire::rewrite_icmp_error, does ICMP_PLANS;
    moved_error_inwards = moved::icmp_error, does ICMP_PLANS;
    returns = from_wire::returns, does DNAT_PLANS;
    own_return = own_return::own_return, does DNAT_PLANS;
    tracked_inwards = tracked::inwards, does DNAT_PLANS;
    frag_needed = nat::frag_needed::send;

    enter = from_mapped::enter, plans HANDED_ON;
    reply = from_mapped::reply, plans BEGIN_PLANS, does HANDED_ON;
    fragment_outwards = from_mapped::later_fragment, does HANDED_ON;
    plan_error_outwards = from_mapped::plan_icmp_error, plans ICMP_PLANS, does HANDED_ON;
    error_outwards = from_mapped::rewrite_icmp_error, does ICMP_PLANS;
    plan_begin = from_mapped::plan_begin, plans BEGIN_PLANS;
    begin = from_mapped::begin, does BEGIN_PLANS;
    tracked_outwards = from_mapped::tracked, does BEGIN_PLANS;
    refuse = from_mapped::refuse, does HANDED_ON;

    enter_own = to_wire::enter, plans DNAT_PLANS;
    leave = to_wire::leave, does DNAT_PLANS;
    begin_own = to_wire::begin, does DNAT_PLANS;
}

/// `from_container`: as [`from_container::run`], or for ports in VLANs as [`from_member::run`].
#[inline(always)]
pub(crate) fn from_container(skb: *mut __sk_buff) -> i32 {
    let action = match RESTRICTED.load() {
        0 => heard(skb, forward_open::<FRAMED>(skb)),
        1 => heard(skb, forward_restricted::<FRAMED>(skb)),
        _ => forward_member::<FRAMED>(skb),
    };
    action::said(skb, action, WatchedProgram::FromContainer)
}

/// The action, after the parts of `from_container` behind the first.
#[inline(always)]
fn heard(skb: *mut __sk_buff, action: i32) -> i32 {
    // First, with one question: most frames are done.
    if action >= TC_ACT_UNSPEC {
        return action;
    }
    let action = if action == SUPPRESS { suppress_container::<FRAMED>(skb) } else { action };
    let action = if action == HEAR { hear_container::<FRAMED>(skb) } else { action };
    if action == ANSWER { answer_container::<FRAMED>(skb) } else { action }
}

/// `from_host`: as [`from_host::run`].
#[inline(always)]
pub(crate) fn from_host(skb: *mut __sk_buff) -> i32 {
    let action = match forward_host::<FRAMED>(skb) {
        ANSWER => {
            note_host::<FRAMED>(skb);
            answer_host::<FRAMED>(skb)
        }
        action => action,
    };
    action::said(skb, action, WatchedProgram::FromHost)
}

/// `from_wire`, and `from_tunnel`: as [`from_wire::run`].
#[inline(always)]
pub(crate) fn from_wire<const KIND: u8>(skb: *mut __sk_buff) -> i32 {
    SctpNote::clear(skb);
    let action = match dnat::<KIND>(skb) {
        MOVED => match moved_dnat::<KIND>(skb) {
            BEGIN => begin_moved_dnat::<KIND>(skb),
            action => action,
        },
        BEGIN => begin_dnat::<KIND>(skb),
        action => action,
    };
    let action = match action {
        ICMP_ERROR => match fragment_inwards::<KIND>(skb) {
            ICMP_ERROR => match plan_error_inwards::<KIND>(skb) {
                ICMP_ERROR => error_inwards::<KIND>(skb),
                MOVED => moved_error_inwards::<KIND>(skb),
                action => action,
            },
            action => action,
        },
        RETURN => returns::<KIND>(skb),
        OWN_RETURN => own_return::<KIND>(skb),
        TRACKED => tracked_inwards::<KIND>(skb),
        action => with_sctp_checksum(skb, action),
    };
    let action = if action == FRAG_NEEDED { frag_needed::<KIND>(skb) } else { action };
    Skb::new(TcContext::new(skb)).unmark_outside();
    action::said(skb, action, either::<KIND>(WatchedProgram::FromWire, WatchedProgram::FromTunnel))
}

/// `to_wire`, and `to_tunnel`: as [`to_wire::run`].
#[inline(always)]
pub(crate) fn to_wire<const KIND: u8>(skb: *mut __sk_buff) -> i32 {
    let action = match enter_own::<KIND>(skb) {
        TRANSLATE => match leave::<KIND>(skb) {
            BEGIN => begin_own::<KIND>(skb),
            action => action,
        },
        action => action,
    };
    action::said(skb, action, either::<KIND>(WatchedProgram::ToWire, WatchedProgram::ToTunnel))
}

/// The program of framed or of bare packets.
#[inline(always)]
const fn either<const KIND: u8>(framed: WatchedProgram, bare: WatchedProgram) -> WatchedProgram {
    if KIND == FRAMED { framed } else { bare }
}

/// `from_mapped`: as [`from_mapped::run`].
#[inline(always)]
pub(crate) fn from_mapped(skb: *mut __sk_buff) -> i32 {
    SctpNote::clear(skb);
    let action = match enter::<FRAMED>(skb) {
        TRANSLATE => reply::<FRAMED>(skb),
        action => action,
    };
    let action = match action {
        ICMP_ERROR => match fragment_outwards::<FRAMED>(skb) {
            ICMP_ERROR => match plan_error_outwards::<FRAMED>(skb) {
                ICMP_ERROR => error_outwards::<FRAMED>(skb),
                action => action,
            },
            action => action,
        },
        BEGIN => match plan_begin::<FRAMED>(skb) {
            BEGIN => begin::<FRAMED>(skb),
            action => action,
        },
        TRACKED => tracked_outwards::<FRAMED>(skb),
        action => with_sctp_checksum(skb, action),
    };
    let action = if action == FRAG_NEEDED { refuse::<FRAMED>(skb) } else { action };
    if action != TC_ACT_UNSPEC {
        // As `guard::unmark_unless_passed`.
        Skb::new(TcContext::new(skb)).take_checked();
    }
    action::said(skb, action, WatchedProgram::FromMapped)
}

/// The action, after SCTP's checksum has been updated where a note asks for it.
#[inline(always)]
fn with_sctp_checksum(skb: *mut __sk_buff, action: i32) -> i32 {
    SctpNote::put(skb, action);
    if SctpNote::is_there(skb) {
        update_sctp_checksum(skb);
    }
    SctpNote::fetch(skb)
}

#[inline(never)]
fn update_sctp_checksum(skb: *mut __sk_buff) -> i32 {
    SctpNote::apply(skb);
    0
}
