//! What comes of one part of a program.

use crate::verdict::{Delivery, DropReason, PassReason, Stop, Verdict};

/// A program is a chain of parts, each of which is a kernel function with a stack of its own. A part ends the packet's
/// way, or names the part that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The packet's way ends here.
    Done(Verdict),
    /// A frame to a group, of ARP or IPv6 or from another station behind the container: the part that suppresses what nobody needs.
    Suppress,
    /// An announcement, or a frame of another station behind the container: the part that hears these.
    Hear,
    /// An ARP request or neighbour solicitation: the neighbour proxy.
    Answer,
    /// To the node, from a port with host ports or masquerading: `from_mapped`, which runs behind `from_container`.
    Reply,
    /// The same where that program has judged it: its parts that translate.
    Translate,
    /// Of no connection: the part that begins one.
    Begin,
    /// To a host port whose container has another MAC address by now, or another port: the part that has the kernel find it.
    Moved,
    /// To a port of the node that a masqueraded connection has: the part that undoes the masquerading.
    Return,
    /// To a port of the node that a connection of the kernel's has in another's place: the part that undoes that.
    OwnReturn,
    /// Of a host port's connection that the kernel has opened: the part that carries it.
    Tracked,
    /// No transport header to translate: the parts for later fragments and for ICMP errors.
    IcmpError,
    /// Too large for the container's link, dropped and counted: the part that sends the ICMP error.
    FragNeeded,
}

impl Next {
    /// The verdict, where no further part runs.
    #[inline(always)]
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Done(verdict) => verdict,
            Self::Suppress | Self::Hear => Verdict::Pass(PassReason::ForeignSource),
            Self::Answer => Verdict::Pass(PassReason::Group),
            Self::Reply | Self::Translate | Self::Begin | Self::IcmpError => {
                Verdict::Pass(PassReason::ToHost)
            }
            Self::Tracked => Verdict::Pass(PassReason::Unaccepted),
            Self::Return | Self::OwnReturn | Self::Moved => Verdict::Pass(PassReason::Stray),
            Self::FragNeeded => Verdict::Drop(DropReason::TooBig),
        }
    }
}

impl Next {
    /// Whether the packet is left to the kernel, or to a program behind this one.
    #[inline(always)]
    pub const fn is_passed(&self) -> bool {
        matches!(self, Self::Done(Verdict::Pass(_)) | Self::Reply)
    }
}

impl From<Verdict> for Next {
    #[inline(always)]
    fn from(verdict: Verdict) -> Self {
        Self::Done(verdict)
    }
}

impl From<Stop> for Next {
    #[inline(always)]
    fn from(stop: Stop) -> Self {
        Self::Done(stop.into())
    }
}

impl From<Result<Delivery, Stop>> for Next {
    #[inline(always)]
    fn from(result: Result<Delivery, Stop>) -> Self {
        Self::Done(result.into())
    }
}

impl From<Result<Delivery, Self>> for Next {
    #[inline(always)]
    fn from(result: Result<Delivery, Self>) -> Self {
        match result {
            Ok(delivery) => Self::Done(Verdict::Deliver(delivery)),
            Err(next) => next,
        }
    }
}
