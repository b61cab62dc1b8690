//! `ACCEPTED`: flows between containers that others' rules have let through; `HEEDING`: how long that holds. `OPENED`: TCP connections among them
//! whose segments connection tracking still checks.

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::FlowKey;

/// Value of `ACCEPTED`, by flow.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct AcceptedFlow {
    /// When the kernel last let a packet of each direction through, in nanoseconds of `CLOCK_BOOTTIME`: first those of the flow's lower end.
    /// 0 for never.
    pub seen: [u64; 2],
    /// The ports of both ends, by ifindex, the lower end's first.
    pub ends: [u32; 2],
    /// The rules' generation then ([`Heeding::generation`]).
    pub generation: u32,
    /// `ACCEPTED_…` bits.
    pub flags: u16,
    /// Segments that the kernel has let through since each direction's first, while connection tracking checked them; from [`CHECKED_SEGMENTS`] on, leases that
    /// have begun since. Roughly: two processors may count one at a time.
    pub checked: u16,
}

/// [`AcceptedFlow::flags`]: connection tracking does not mind that it misses most segments of this TCP connection; of one that the kernel
/// translates, that the programs know what becomes of its connection. The agent writes it.
pub const ACCEPTED_LIBERAL: u16 = 1;

/// [`AcceptedFlow::checked`] from which on the agent is asked, ever more seldom while it changes nothing. Most connections of one question and one answer end before.
pub const CHECKED_SEGMENTS: u16 = 3;

/// The same of a connection that the kernel translates, about which more has to be found out.
pub const TRANSLATED_SEGMENTS: u16 = 16;

/// The time that a flow which nobody knows takes of its container's share of `ACCEPTED`, in nanoseconds: a quarter of the map a second.
pub const ACCEPTED_PRICE: u64 = 1_000_000_000 / (super::MAX_ACCEPTED as u64 / 4);

/// The value of `HEEDING`: what an accepted flow is worth. The agent writes it. All zeros accept nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Heeding {
    /// How long a direction takes the fast path after the kernel has let one of its packets through, in nanoseconds.
    pub lease: u64,
    /// The rules' generation: what others have let through is asked again.
    pub generation: u32,
    /// `HEEDING_…` bits.
    pub flags: u32,
}

/// [`Heeding::flags`]: connection tracking does not mind that it misses most segments of any TCP connection.
pub const HEEDING_TCP: u32 = 1;

/// [`Heeding::flags`]: the agent has connection tracking not mind it of each TCP connection that it is asked for by `OPENED` ([`ACCEPTED_LIBERAL`]).
pub const HEEDING_EACH_TCP: u32 = 2;

/// [`Heeding::flags`]: routes depend on marks. What leaves the node with one that is somebody else's takes another way than the programs know.
pub const HEEDING_MARKED_ROUTES: u32 = 4;

/// A record of `OPENED`: what the agent is asked about a flow. What finds no room is asked a lease later.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, FromBytes, Immutable, IntoBytes)]
pub struct Question {
    /// The flow: outside ([`OUTSIDE`](super::translation::OUTSIDE)) that of an answer of a host port, else one of a bridge.
    pub flow: FlowKey,
    /// What is wanted: [`QUESTION_LIBERAL`] or [`QUESTION_TRANSLATION`].
    pub wanted: u32,
}

/// [`Question::wanted`]: that connection tracking is liberal of a TCP connection ([`ACCEPTED_LIBERAL`]).
pub const QUESTION_LIBERAL: u32 = 0;

/// [`Question::wanted`]: that the programs know what connection tracking makes of the flow's packets.
pub const QUESTION_TRANSLATION: u32 = 1;

/// Bytes of `OPENED`.
pub const OPENED_BYTES: u32 = 256 << 10;

const _: () = {
    assert!(size_of::<AcceptedFlow>() == 32);
    assert!(size_of::<Heeding>() == 16);
    assert!(size_of::<Question>() == 48);
};
