//! What may become of a packet, each outcome with its reason.

use crate::wire::address::Address;

/// The end of a journey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The fast path takes it there.
    Deliver(Delivery),
    /// No opinion: the kernel does what it would do without us (`TC_ACT_UNSPEC`).
    Pass(PassReason),
    /// It goes nowhere.
    Drop(DropReason),
    /// So many copies have gone to the members of its VLAN; nothing is left to do.
    Flooded(u32),
}

/// Where the fast path takes a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The host veth end behind which the receiver is.
    pub ifindex: u32,
    /// The receiver's counters.
    pub slot: u32,
    /// How it gets there.
    pub way: Way,
}

/// How a packet gets to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Straight into the container (`bpf_redirect_peer`): only from tc ingress, only while the peer is up.
    Peer,
    /// Out of the host end (`bpf_redirect`), past its tc egress.
    Port,
    /// Out of any interface, to the neighbour with this address (`bpf_redirect_neigh`), whom the kernel resolves.
    Neighbor(Address),
    /// Out of a master, tagged.
    Wire,
    /// In by a host end (`BPF_F_INGRESS`), as if its container had sent it.
    Into,
    /// Out of an interface, to whoever sent it, as the word that it was too big: the packet itself was dropped.
    Back,
}

/// A stage's word that the journey is over before delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// See [`Verdict::Pass`].
    Pass(PassReason),
    /// See [`Verdict::Drop`].
    Drop(DropReason),
}

impl From<Result<Delivery, Stop>> for Verdict {
    #[inline(always)]
    fn from(result: Result<Delivery, Stop>) -> Self {
        match result {
            Ok(delivery) => Self::Deliver(delivery),
            Err(Stop::Pass(reason)) => Self::Pass(reason),
            Err(Stop::Drop(reason)) => Self::Drop(reason),
        }
    }
}

impl Verdict {
    /// The verdict as [`crate::abi::Decision`] has it: (verdict, target, reason).
    pub const fn code(self) -> (u32, u32, u32) {
        match self {
            Self::Pass(reason) => (0, 0, reason as u32),
            Self::Drop(reason) => (1, 0, reason as u32),
            Self::Flooded(copies) => (5, copies, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Peer, .. }) => (2, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Port, .. }) => (3, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Neighbor(_), .. }) => (4, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Wire, .. }) => (6, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Into, .. }) => (7, ifindex, 0),
            Self::Deliver(Delivery { ifindex, way: Way::Back, .. }) => {
                (8, ifindex, DropReason::TooBig as u32)
            }
        }
    }
}

/// Defines an enum of reasons with its stage and name for people, in one table.
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $value:literal, $stage:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant = $value,)* }

        impl $name {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The one that maps have as `number`.
            pub const fn from_number(number: u32) -> Option<Self> {
                match number { $($value => Some(Self::$variant),)* _ => None }
            }

            /// The stage that decided.
            pub const fn stage(self) -> &'static str {
                match self { $(Self::$variant => $stage,)* }
            }

            /// Its name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    /// Why a packet is left to the kernel.
    PassReason {
        /// The program runs on an interface that the agent has not described.
        NoPort = 1, "port", "no_port";
        /// Other programs on its interface are to see it too.
        Shared = 13, "admit", "shared";
        /// From an address that is not its container's: a station behind the container, which the kernel's bridge learns.
        ForeignSource = 14, "admit", "foreign_source";
        /// By an uplink that does not forward: the kernel's bridge hears who it is that speaks, and what is for itself.
        Blocked = 15, "admit", "blocked";
        /// Carries a VLAN tag.
        Tagged = 2, "find", "tagged";
        /// To a group of stations: the kernel floods.
        Group = 3, "find", "group";
        /// To a station that is not in the FDB.
        UnknownStation = 4, "find", "unknown_station";
        /// To the node itself.
        ToHost = 5, "find", "to_host";
        /// Back to where it came from.
        Hairpin = 6, "find", "hairpin";
        /// Its flow is the kernel's.
        KernelFlow = 7, "path", "kernel_flow";
        /// A fragment on a port that has kernel flows: the kernel reassembles what it translates.
        Fragment = 8, "path", "fragment";
        /// An ICMP error or a header that cannot be read, on a port that has kernel flows: it may speak of one of them.
        NoFlow = 9, "path", "no_flow";
        /// Larger than the receiver's MTU.
        TooBig = 10, "deliver", "too_big";
        /// By the kernel's way to its container.
        ByKernel = 11, "deliver", "by_kernel";
        /// Judged already where it came from.
        Judged = 12, "deliver", "judged";
        /// To a group, and it may ask for an address that is known: the second half of the program says.
        MayAsk = 61, "find", "may_ask";
        /// To the node itself, from a port that host ports lead to: it may be an answer, and the program behind says.
        MayAnswer = 30, "find", "may_answer";
        /// To a port of the node that leads nowhere.
        Unmapped = 31, "translate", "unmapped";
        /// No ports in it: a later fragment, or one that may quote such a packet. The program's other functions say.
        MayQuote = 37, "translate", "may_quote";
        /// To an address that is not the node's.
        NotLocal = 32, "translate", "not_local";
        /// No connection has its tuple, and it begins none.
        Stray = 33, "translate", "stray";
        /// Another connection of the container has the tuple that it would get.
        TupleTaken = 34, "translate", "tuple_taken";
        /// Its hop limit ends here.
        Expiring = 35, "translate", "expiring";
        /// A fragment of a datagram of which no first one was translated here.
        FirstUnseen = 38, "translate", "first_unseen";
        /// The kernel knows no route for what it would become, or only one that it does not fit.
        NoRoute = 36, "translate", "no_route";
        /// Of no connection, and it may begin a masqueraded one: the second half of the program says.
        MayBegin = 42, "translate", "may_begin";
        /// To a port of the node that a masqueraded connection has: the second half of the program says.
        MayReturn = 39, "translate", "may_return";
        /// The node's copy of what has gone into a container.
        Copied = 43, "translate", "copied";
        /// Its way out of the node is none that masqueraded connections begin by: the kernel masquerades it.
        NoOutlet = 40, "deliver", "no_outlet";
        /// It might begin a masqueraded connection, but the kernel has it already.
        KernelHeld = 41, "translate", "kernel_held";
        /// Seen by its restricted port's program already.
        Checked = 44, "guard", "checked";
        /// SCTP's first fragment, under another port: what its checksum would be is not known.
        SumUnknown = 45, "translate", "sum_unknown";
        /// In no VLAN that an interface behind this one is in.
        NoInterface = 60, "find", "no_interface";
    }
}

reasons! {
    /// Why a packet was dropped.
    DropReason {
        /// Shorter than an Ethernet header.
        Truncated = 1, "parse", "truncated";
        /// From a group address or from none: the kernel's bridge takes no such frame either.
        SourceInvalid = 2, "admit", "source_invalid";
        /// A restricted port whose entry is missing: what may pass is not known, so nothing does.
        NoPort = 3, "port", "no_port";
        /// From an address that is not the container's (`macspoofchk`).
        SourceSpoofed = 4, "admit", "source_spoofed";
        /// It speaks for an IP address that is not the container's (`ipspoofchk`).
        AddressSpoofed = 6, "vouch", "address_spoofed";
        /// More than its limit: it did not wait in the queue that is for that.
        RateExceeded = 7, "police", "rate_exceeded";
        /// More broadcast or multicast than its port may flood (`stormControl`).
        StormControl = 8, "police", "storm_control";
        /// To a container that takes nothing from where it came from (`ingressPolicy`).
        IngressPolicy = 9, "isolate", "ingress_policy";
        /// Between two isolated ports (`portIsolation`).
        Isolated = 5, "isolate", "isolated";
        /// To a restricted port, from a known station's address and another place than that station's.
        Impostor = 20, "reach", "impostor";
        /// To an isolated port, from an interface on its bridge that is neither a container's nor a wire.
        Stranger = 21, "reach", "stranger";
        /// By a restricted port whose program has not seen it: it was taken away.
        Unchecked = 35, "guard", "unchecked";
        /// In a VLAN, by an uplink that does not forward (a spanning tree's).
        Blocked = 34, "admit", "blocked";
        /// On a port in VLANs: a service tag (802.1ad).
        ServiceTag = 22, "classify", "service_tag";
        /// On a port in VLANs: a tag within a tag.
        StackedTags = 23, "classify", "stacked_tags";
        /// In a VLAN that its port may not send in.
        NotMember = 24, "classify", "not_member";
        /// To a container that is not in the frame's VLAN.
        OtherVlan = 25, "form", "other_vlan";
        /// To a group that no bridge forwards (IEEE 802.1Q, table 8-1).
        ReservedGroup = 26, "find", "reserved_group";
        /// Between the kernel's bridge and a port in VLANs, which have nothing to do with each other.
        KernelsWay = 27, "port", "kernels_way";
        /// The kernel would not change its tag.
        NotTagged = 28, "form", "not_tagged";
        /// Back to the port in VLANs that it came from.
        Hairpin = 29, "find", "hairpin";
        /// Of a masqueraded connection, and its hop limit ends here: the node's own stack would take it for its own.
        Expired = 31, "translate", "expired";
        /// Of a masqueraded connection whose way out of the node is another one by now: nobody would know its address there.
        Rerouted = 32, "deliver", "rerouted";
        /// Of a masqueraded connection and larger than its way out takes: cut by the kernel, it would be masqueraded by it too.
        Uncut = 33, "deliver", "uncut";
        /// Come in without an Ethernet header, which the kernel had no memory to put in front of it.
        NoMemory = 36, "deliver", "no_memory";
        /// Larger than the container's MTU, and come by a port of the node, where it would be a stray, or by a VLAN.
        TooBig = 30, "deliver", "too_big";
    }
}
