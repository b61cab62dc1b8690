//! Every look-up and update that a stage may make.

mod accepted_flows;
mod aliases;
mod kernel_flows;

pub use self::accepted_flows::AcceptedFlows;
pub use self::aliases::Aliases;
pub use self::kernel_flows::{Claimant, KernelFlows};

use crate::abi::fragment::{FragmentKey, FragmentTranslation};
use crate::abi::learning::{Learned, Learning};
use crate::abi::policer::{Policer, SubnetKey};
use crate::abi::share::{Share, Side};
use crate::abi::translation::Direction;
use crate::abi::translation::{Mapping, MappingKey, Masquerade, Outlet, SourceKey, Translation, TupleKey};
use crate::abi::vlan::{Member, MemberKey};
use crate::abi::{
    AddressKey, DropKey, FlowKey, LinkLocal, NO_OWNER, Owner, PORT_CHECKED, Port, PortKey, ReversePath,
    STATION_HOST, STATION_MOVED, Station, StationKey,
};
use crate::nat::connection::Fate;
use crate::wire::Step;
use crate::wire::address::Address;

/// Which of a port's counters ([`crate::abi::PortCounters`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// From the container, delivered by the fast path.
    FromFast,
    /// From the container, left to the kernel.
    FromKernel,
    /// From the container, dropped.
    FromDropped,
    /// To the container, delivered by the fast path.
    ToFast,
    /// To the container, by the kernel's way.
    ToKernel,
    /// To the container, dropped.
    ToDropped,
}

/// The result of inserting a new entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// Inserted.
    New,
    /// There is an entry already.
    Exists,
    /// The map is full.
    Full,
}

/// The result of hearing a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Where it was, and recorded not long ago.
    Again,
    /// Where it was.
    Still,
    /// New.
    New,
    /// Moved from another uplink.
    Moved,
    /// New, and the table has no room.
    Refused,
}

/// A packet to route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteQuery {
    /// The interface that it comes from, as the kernel sees it: a bridge, not its port.
    pub from: u32,
    /// The source.
    pub source: Address,
    /// The destination.
    pub destination: Address,
    /// Bytes that have to fit, IP header included; 0 for those that the kernel itself does not judge.
    pub bytes: u16,
}

/// Why a packet is given no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrouted {
    /// There is none that leads out of the node.
    NoRoute,
    /// It does not fit the route's MTU, which this is, in bytes.
    TooBig(u16),
}

/// A route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The interface.
    pub ifindex: u32,
    /// The neighbour.
    pub next_hop: Address,
}

/// A packet of a translated connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Its bytes, Ethernet header included.
    pub bytes: u32,
    /// What it says, if it is TCP's.
    pub step: Option<Step>,
    /// When it came, in nanoseconds of `CLOCK_BOOTTIME`.
    pub now: u64,
}

/// The maps, as the stages see them. Values are copies: a decision rests on one state of each entry.
pub trait Tables: KernelFlows + AcceptedFlows + Aliases {
    /// An interface that programs run on (`PORTS`).
    fn port(&self, key: &PortKey) -> Option<Port>;

    /// Hands the entry of the port `here` to the program behind this one: the packet is for the node (`HANDED_ON`).
    fn hand_on(&self, here: u32, port: &Port);

    /// A station's place (`FDB`).
    fn station(&self, key: &StationKey) -> Option<Station>;

    /// Marks the station of a port as moved, or as back ([`STATION_MOVED`], and [`crate::abi::PORT_AWAY`] of the port).
    fn mark_moved(&self, key: &StationKey, port: &PortKey, is_moved: bool);

    /// Sets a bit of an interface's [`Port::flags`], or takes it away, where it has an entry.
    fn mark_port(&self, key: &PortKey, bit: u32, is_set: bool);

    /// Notes that somebody may know an address (`MENTIONS`).
    fn mention(&self, key: &AddressKey);

    /// Whether somebody may know it.
    fn is_mentioned(&self, key: &AddressKey) -> bool;

    /// Gives an address that is in `ADDRESSES` another owner.
    fn give(&self, key: &AddressKey, owner: &Owner);

    /// Hears the station `key` at the port `here`. Whether that is news: it has moved there from another open port, or is back.
    #[inline(always)]
    fn hear_station(&self, key: &StationKey, here: u32) -> bool {
        let Some(station) = self.station(key) else { return false };
        let (is_moved, was_moved) = (station.ifindex != here, station.flags & STATION_MOVED != 0);
        if is_moved == was_moved || station.flags & STATION_HOST != 0 {
            return false;
        }
        if is_moved && !self.is_open(station.ifindex) {
            return false;
        }
        self.mark_moved(key, &PortKey { ifindex: station.ifindex }, is_moved);
        true
    }

    /// Hears at the port `here` that `owner` has the address `key`. Whether that is news: an open port had it.
    #[inline(always)]
    fn hear_address(&self, key: &AddressKey, owner: &Owner, here: u32) -> bool {
        let Some(known) = self.owner(key) else { return false };
        if known.ifindex == owner.ifindex {
            return false;
        }
        if known.ifindex != here && known.ifindex != NO_OWNER && !self.is_open(known.ifindex) {
            return false;
        }
        self.give(key, owner);
        true
    }

    /// Whether other ports may take the addresses of this one.
    #[inline(always)]
    fn is_open(&self, ifindex: u32) -> bool {
        self.port(&PortKey { ifindex }).is_some_and(|port| port.flags & PORT_CHECKED == 0)
    }

    /// A station beyond an uplink (`LEARNED`).
    fn learned(&self, key: &StationKey) -> Option<Learned>;

    /// Writes such a station; false if there is no room.
    fn learn(&self, key: &StationKey, value: &Learned) -> bool;

    /// Removes it.
    fn unlearn(&self, key: &StationKey);

    /// What an uplink has learned (`UPLINKS`).
    fn uplink(&self, key: &PortKey) -> Option<Learning>;

    /// Counts the result of hearing a station there.
    fn count_heard(&self, key: &PortKey, heard: Heard);

    /// Whether an uplink's driver takes frames from another's (`NICS`). The last look-up: the kernel notes the uplink as the target of a
    /// redirect.
    fn takes(&self, ifindex: u32) -> bool;

    /// The container that has an address (`ADDRESSES`).
    fn owner(&self, key: &AddressKey) -> Option<Owner>;

    /// The link-local address that a port's container has chosen (`LINK_LOCALS`).
    fn link_local(&self, key: &PortKey) -> Option<LinkLocal>;

    /// Writes it; false if the port has one, or there is no room.
    fn choose_link_local(&self, key: &PortKey, value: &LinkLocal) -> bool;

    /// Removes it.
    fn forget_link_local(&self, key: &PortKey);

    /// Resolves the owner of an address: its port and its station. `vid` is that of the bridge's stations
    /// ([`StationKey::vid`]).
    #[inline(always)]
    fn resident(&self, key: &AddressKey, vid: u16) -> Option<(Port, Station)> {
        let owner = self.owner(key)?;
        let port = self.port(&PortKey { ifindex: owner.ifindex })?;
        let at = |vid| self.station(&StationKey { bridge: key.bridge, vid, mac: port.mac });
        let station = at(key.vid).or_else(|| if vid == key.vid { None } else { at(vid) })?;
        (station.ifindex == owner.ifindex).then_some((port, station))
    }

    /// Whether a port is a tagged member of a VLAN (`TAGGED`).
    fn is_tagged(&self, key: &PortKey, vid: u16) -> bool;

    /// A port in VLANs, by its position among its bridge's (`MEMBERS`).
    fn member(&self, key: &MemberKey) -> Option<Member>;

    /// Calls `body` with 0, 1 and so on, at most `times` times, until it returns false.
    fn repeat(&self, times: u32, body: impl FnMut(u32) -> bool);

    /// Nanoseconds of `CLOCK_BOOTTIME`.
    fn boot_time(&self) -> u64;

    /// A host port's container (`MAPPINGS`).
    fn mapping(&self, key: &MappingKey) -> Option<Mapping>;

    /// Whether an address is the node's (`LOCALS`).
    fn is_local(&self, address: &Address) -> bool;

    /// Shows both directions of a translated connection to `judge`. If it goes on, `mine` is [advanced](Translation::advance) by
    /// `packet`; none is one that is about the connection, and not of it. Then both entries go where they belong
    /// ([`crate::nat::connection::is_assured`]): to `ASSURED`, while there is room, or to `FLOWS`; and the opening is paid back with
    /// [its answer](Translation::answers).
    /// `other` gets the connection's destination. None where an entry is missing, or the two are not one connection's.
    fn follow(
        &self,
        mine: &TupleKey,
        other: &mut TupleKey,
        packet: Option<&Followed>,
        judge: impl FnOnce(Direction, Direction) -> Fate,
    ) -> Option<Fate>;

    /// The translation of a tuple, and the holder of its masqueraded connection ([`Translation::holder`]).
    fn becomes(&self, key: &TupleKey) -> Option<(TupleKey, u32)>;

    /// Whether the direction of a flow from `source` is that of a translated connection whose opener may be answered directly
    /// ([`crate::abi::translation::TRANSLATION_NEAR`]).
    fn answers_neighbor(&self, flow: &FlowKey, source: Address) -> bool;

    /// A container's masqueraded address (`MASQUERADES`).
    fn masquerade(&self, key: &AddressKey) -> Option<Masquerade>;

    /// An interface, and an address of its own, by which masqueraded connections leave (`OUTLETS`).
    fn outlet(&self, key: &AddressKey) -> Option<Outlet>;

    /// The address that they get there (`SOURCES`).
    fn source(&self, key: &SourceKey) -> Option<Address>;

    /// How the kernel filters sources at an interface (`REVERSE_PATHS`); none where it does not.
    fn reverse_path(&self, key: &PortKey) -> Option<ReversePath>;

    /// Whether a socket of the node would receive the reply to a packet with this tuple.
    fn has_socket(&self, tuple: &TupleKey) -> bool;

    /// What a container has of the tables of connections (`SHARES`), by its counter slot.
    fn share(&self, slot: u32) -> Option<Share>;

    /// Sets the time when all of its openings are paid for.
    fn begin_openings(&self, slot: u32, side: Side, due: u64);

    /// Adds `nanoseconds` to that, atomically.
    fn charge_opening(&self, slot: u32, side: Side, nanoseconds: u64);

    /// Inserts an entry into `FLOWS` where neither map has one.
    fn insert_flow(&self, key: &TupleKey, value: &Translation) -> Inserted;

    /// Overwrites an entry, or inserts it into `FLOWS`.
    fn replace_flow(&self, key: &TupleKey, value: &Translation) -> bool;

    /// Removes an entry, of whichever map.
    fn forget_flow(&self, key: &TupleKey);

    /// Records that the first fragment of a datagram has the tuple `key` and becomes `becomes` (`FRAGMENTS`).
    fn remember_fragment(&self, identification: [u16; 2], key: &TupleKey, becomes: &TupleKey);

    /// The translation of a datagram's first fragment.
    fn fragment(&self, key: &FragmentKey) -> Option<FragmentTranslation>;

    /// The kernel's route for a packet.
    ///
    /// # Errors
    /// Why it has none.
    fn route(&self, query: &RouteQuery) -> Result<Route, Unrouted>;

    /// A port's rate, by its counter slot (`POLICERS`).
    fn policer(&self, slot: u32) -> Option<Policer>;

    /// Whether a port's rate covers a destination (`SUBNETS`).
    fn is_limited(&self, key: &SubnetKey) -> bool;

    /// Nanoseconds of `CLOCK_MONOTONIC`.
    fn now(&self) -> u64;

    /// Sets the time when all that a port sent is paid for.
    fn begin(&self, slot: u32, due: u64);

    /// Adds `nanoseconds` to that, atomically.
    fn charge(&self, slot: u32, nanoseconds: u64);

    /// Adds one packet of `bytes` bytes to a port's counter.
    fn count(&self, slot: u32, lane: Lane, bytes: u32);

    /// Adds one packet of `bytes` bytes to a drop reason's counter.
    fn count_drop(&self, key: &DropKey, bytes: u32);
}
