//! Why packets are passed and dropped. Names and numbers are a contract with operators and dashboards; a number that is gone is
//! never used again (30, 37, 39, 42 and 61 of [`PassReason`]).

use crate::stage::Stage;

/// Defines an enum of reasons: its number in maps, the stage that gives it, and its name in reports.
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $value:literal, $stage:ident, $text:literal;)* }) => {
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

            /// The stage that gives it.
            pub const fn stage(self) -> Stage {
                match self { $(Self::$variant => Stage::$stage,)* }
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
        /// The interface has no entry in `PORTS`.
        NoPort = 1, Port, "no_port";
        /// Other programs filter on its interface, or the kernel's bridge judges what the port sends.
        Shared = 13, MacFilter, "shared";
        /// The source MAC address is not the container's: a station behind the container, which the kernel's bridge learns.
        ForeignSource = 14, MacFilter, "foreign_source";
        /// The container's station was heard at another port: the kernel's bridge has to hear that it is here.
        Away = 47, MacFilter, "away";
        /// By a port that does not forward: the kernel's bridge drops it. An uplink's bridge learns from it, and takes BPDUs.
        Blocked = 15, MacFilter, "blocked";
        /// Carries a VLAN tag.
        Tagged = 2, Find, "tagged";
        /// To a group of stations: the kernel floods.
        Group = 3, Find, "group";
        /// To a station that is neither in the FDB nor learned.
        UnknownStation = 4, Find, "unknown_station";
        /// To the node itself.
        ToHost = 5, Find, "to_host";
        /// Back to where it came from.
        Hairpin = 6, Find, "hairpin";
        /// Its flow is the kernel's.
        KernelFlow = 7, FlowAffinity, "kernel_flow";
        /// A fragment, on a port with kernel flows: the kernel reassembles what it translates.
        Fragment = 8, FlowAffinity, "fragment";
        /// An ICMP error or an unreadable header, on a port with kernel flows: it may belong to one of them.
        NoFlow = 9, FlowAffinity, "no_flow";
        /// Larger than the receiver's MTU.
        TooBig = 10, Deliver, "too_big";
        /// Somebody has set the receiver's port so that the kernel's bridge judges what goes there.
        Aside = 18, Deliver, "aside";
        /// Others' rules have not let its flow through, or not lately: the kernel asks them.
        Unaccepted = 52, Accept, "unaccepted";
        /// By the kernel's path to its container.
        ByKernel = 11, Deliver, "by_kernel";
        /// Judged already by the program of its origin.
        Judged = 12, Deliver, "judged";
        /// To a port of the node that is no host port.
        Unmapped = 31, Translate, "unmapped";
        /// To an address that is not the node's.
        NotLocal = 32, Translate, "not_local";
        /// Of no connection, and it begins none.
        Stray = 33, Translate, "stray";
        /// No free tuple: another connection has the one that it would get.
        TupleTaken = 34, Translate, "tuple_taken";
        /// Its container has as many assured connections as it may have: the kernel masquerades it.
        ConnectionLimit = 49, Translate, "connection_limit";
        /// Its container has opened too many connections lately that nobody has answered: the kernel masquerades it.
        OpeningRate = 50, Translate, "opening_rate";
        /// Its hop limit ends here.
        Expiring = 35, Translate, "expiring";
        /// A later fragment of a datagram whose first one was not translated.
        FirstUnseen = 38, Translate, "first_unseen";
        /// The kernel has no route for the translated packet, or only one that it does not fit.
        NoRoute = 36, Translate, "no_route";
        /// The node's clone of what has gone into a container.
        Copied = 43, Translate, "copied";
        /// It leaves by an interface that is no outlet: the kernel masquerades it.
        NoOutlet = 40, Deliver, "no_outlet";
        /// It may begin a masqueraded connection, but its flow is the kernel's.
        KernelHeld = 41, Translate, "kernel_held";
        /// Seen by its restricted port's program.
        Checked = 44, Guard, "checked";
        /// A first fragment of SCTP that would get another port: its new checksum cannot be computed.
        SumUnknown = 45, Translate, "sum_unknown";
        /// To a host port, from an address that no packet may have there: the kernel's stack drops it.
        Martian = 46, Translate, "martian";
        /// To a host port, and the route to its source does not lead back: by its reverse path filter the kernel's stack drops it.
        ReversePath = 48, Translate, "reverse_path";
        /// It answers a datagram of the node's own, or one that the kernel has masqueraded.
        Claimed = 51, Translate, "claimed";
        /// In a VLAN of no interface behind this one.
        NoInterface = 60, Find, "no_interface";
    }
}

reasons! {
    /// Why a packet was dropped.
    DropReason {
        /// Shorter than an Ethernet header.
        Truncated = 1, Parse, "truncated";
        /// A group or zero source MAC address: the kernel's bridge drops such a frame as well.
        SourceInvalid = 2, MacFilter, "source_invalid";
        /// A restricted port without an entry in `PORTS`. Fails closed: its restrictions are unknown.
        NoPort = 3, Port, "no_port";
        /// The source MAC address is not the container's (`macspoofchk`).
        SourceSpoofed = 4, MacFilter, "source_spoofed";
        /// It claims an IP address that is not the container's (`ipspoofchk`).
        AddressSpoofed = 6, SourceGuard, "address_spoofed";
        /// A router advertisement, a redirect or a DHCP server's message, by a checked port that is not `trusted` (`ipspoofchk`).
        Untrusted = 37, SourceGuard, "untrusted";
        /// Over the port's rate: it bypassed the tbf.
        RateExceeded = 7, Police, "rate_exceeded";
        /// Over the port's rate of broadcast or multicast frames (`stormControl`).
        StormControl = 8, Police, "storm_control";
        /// The receiver's `ingressPolicy` forbids its origin.
        IngressPolicy = 9, Isolate, "ingress_policy";
        /// Between two isolated ports (`portIsolation`).
        Isolated = 5, Isolate, "isolated";
        /// A known station's source address, from another place than that station's.
        Impostor = 20, OriginCheck, "impostor";
        /// To an isolated port, from an interface on its bridge that is neither a container's nor an uplink.
        Stranger = 21, OriginCheck, "stranger";
        /// By a restricted port whose program has not seen it: the program is detached.
        Unchecked = 35, Guard, "unchecked";
        /// Tagged, by an uplink that does not forward (spanning tree).
        Blocked = 34, MacFilter, "blocked";
        /// On a port in VLANs: a service tag (802.1ad).
        ServiceTag = 22, Classify, "service_tag";
        /// On a port in VLANs: a tag within a tag.
        StackedTags = 23, Classify, "stacked_tags";
        /// In a VLAN that its port is no member of.
        NotMember = 24, Classify, "not_member";
        /// The receiver is no member of the frame's VLAN.
        OtherVlan = 25, Retag, "other_vlan";
        /// To a group that no bridge forwards (IEEE 802.1Q, table 8-1).
        ReservedGroup = 26, Find, "reserved_group";
        /// Between the kernel's bridge and a port in VLANs, which the bridge never serves.
        KernelsWay = 27, Port, "kernels_way";
        /// The kernel did not change its tag.
        NotTagged = 28, Retag, "not_tagged";
        /// Back to the port that it came from: in VLANs, or to a bridge inside the container (`hairpinMode`).
        Hairpin = 29, Find, "hairpin";
        /// Of a masqueraded connection, with no hop left: the node's stack would take it for its own.
        Expired = 31, Translate, "expired";
        /// Of a masqueraded connection whose route now leaves by an interface with another address.
        Rerouted = 32, Deliver, "rerouted";
        /// Of a masqueraded connection and too large for its route: the kernel would fragment it and masquerade it itself.
        Uncut = 33, Deliver, "uncut";
        /// Translated, for a container whose port does not forward.
        NotForwarding = 40, Deliver, "not_forwarding";
        /// To a host port whose container has as many assured connections as it may have.
        ConnectionLimit = 41, Translate, "connection_limit";
        /// To a host port of a container to which too many connections were opened lately that it has not answered.
        OpeningRate = 42, Translate, "opening_rate";
        /// Of the node's own, or masqueraded by the kernel: a container's connection has its tuple, and no other port is free.
        TupleTaken = 43, Translate, "tuple_taken";
        /// The kernel had no memory for the Ethernet header of a packet that came in without one.
        NoMemory = 36, Deliver, "no_memory";
        /// Larger than the container's MTU, to a host port or in a VLAN, where the kernel could not deliver it.
        TooBig = 30, Deliver, "too_big";
    }
}
