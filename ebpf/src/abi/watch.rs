//! What the watched programs tell: a second build of the programs, which is attached while somebody watches.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The most bytes of a packet that are copied.
pub const MAX_SNAP: u32 = 16_384;

/// Bytes of `WATCHED`.
pub const WATCHED_BYTES: u32 = 4 << 20;

/// `WATCHED_PORTS`: the interfaces that are watched, where not all are.
pub const MAX_WATCHED_PORTS: u32 = 4_096;

/// [`WatchedPacket::verdict`] of a packet that is left to the kernel, of one that is dropped, and of one that is dropped with an ICMP
/// error to its sender (`Verdict::code`). All others are delivered.
pub const VERDICT_PASS: u32 = 0;
/// See [`VERDICT_PASS`].
pub const VERDICT_DROP: u32 = 1;
/// See [`VERDICT_PASS`].
pub const VERDICT_BACK: u32 = 8;

/// How long a budget lasts, in nanoseconds.
pub const WATCH_INTERVAL: u64 = 100_000_000;

/// `WATCH_BUDGETS`: one for each reason of a drop, one for each of a pass, and one for all deliveries.
pub const WATCH_BUDGETS: u32 = 2 * REASONS + 1;

/// More than there are reasons of either kind.
const REASONS: u32 = 64;

/// The budget of a verdict, so that many packets of one reason do not hide few of another.
#[inline(always)]
pub const fn watch_budget(verdict: u32, reason: u32) -> u32 {
    match verdict {
        VERDICT_DROP | VERDICT_BACK => reason % REASONS,
        VERDICT_PASS => REASONS + reason % REASONS,
        _ => 2 * REASONS,
    }
}

/// Value of `WATCH`, whose only key is 0: what is told. Written by the agent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct Watch {
    /// A bit for each verdict that is told, `1 << Verdict::code`.
    pub verdicts: u32,
    /// Bytes of each packet, at most [`MAX_SNAP`].
    pub snap: u32,
    /// Packets that a CPU tells of each budget in a [`WATCH_INTERVAL`].
    pub most: u32,
    /// Whether only the interfaces in `WATCHED_PORTS` are watched.
    pub only_some: u32,
}

/// Value of `WATCH_BUDGETS`, of each CPU. Written by the programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Immutable, IntoBytes)]
pub struct WatchBudget {
    /// When the interval began, by `bpf_ktime_get_ns`.
    pub since: u64,
    /// Packets told in it.
    pub told: u64,
    /// Packets that were over the budget, ever.
    pub left_out: u64,
    /// Packets for which `WATCHED` had no room, ever.
    pub lost: u64,
}

/// What stands before a packet's bytes in `WATCHED`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout)]
pub struct WatchedPacket {
    /// When, by `bpf_ktime_get_ns`.
    pub time: u64,
    /// The interface that the program runs on.
    pub ifindex: u32,
    /// Which program: [`WatchedProgram`].
    pub program: u32,
    /// Of `Verdict::code`, as [`super::Decision`] has them.
    pub verdict: u32,
    /// See `verdict`.
    pub target: u32,
    /// See `verdict`.
    pub reason: u32,
    /// The packet's length.
    pub length: u32,
    /// How many of its bytes follow.
    pub captured: u32,
    /// The tag beside its bytes, and `1 << 16`; 0 for none.
    pub tag: u32,
    /// The tag's protocol, in network order.
    pub tag_protocol: u32,
    /// 1 where it has no Ethernet header.
    pub bare: u32,
}

const _: () = {
    assert!(size_of::<Watch>() == 16);
    assert!(size_of::<WatchBudget>() == 32);
    assert!(size_of::<WatchedPacket>() == 48);
};

/// Declares the programs.
macro_rules! programs {
    ($($variant:ident = $value:literal, $name:literal;)*) => {
        /// A program that tells.
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "their names say it")]
        pub enum WatchedProgram { $($variant = $value,)* }

        impl WatchedProgram {
            /// The one that packets have as `number`.
            pub const fn from_number(number: u32) -> Option<Self> {
                match number { $($value => Some(Self::$variant),)* _ => None }
            }

            /// Its name in the object and in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

programs! {
    FromContainer = 1, "from_container";
    FromMapped = 2, "from_mapped";
    ToContainer = 3, "to_container";
    FromHost = 4, "from_host";
    FromWire = 5, "from_wire";
    FromTunnel = 6, "from_tunnel";
    ToWire = 7, "to_wire";
    ToTunnel = 8, "to_tunnel";
    FromVlan = 9, "from_vlan";
    FromTrunk = 10, "from_trunk";
    ToTrunk = 11, "to_trunk";
    FromNic = 12, "from_nic";
    FromUplink = 13, "from_uplink";
    ToUplink = 14, "to_uplink";
    GuardFrom = 15, "guard_from";
    GuardTo = 16, "guard_to";
}

impl WatchedProgram {
    /// Whether it answers packets that are too big with an ICMP error of the fast path's own.
    #[inline(always)]
    pub const fn answers_too_big(self) -> bool {
        matches!(self, Self::FromMapped | Self::FromWire | Self::FromTunnel | Self::ToWire | Self::ToTunnel)
    }
}
