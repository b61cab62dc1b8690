//! Every question that a stage may ask of a map.

use crate::abi::fragment::{FragmentKey, FragmentTranslation};
use crate::abi::learning::{Learned, Learning};
use crate::abi::policer::{Policer, SubnetKey};
use crate::abi::translation::{Mapping, MappingKey, Masquerade, Outlet, Translation, TupleKey};
use crate::abi::vlan::{Member, MemberKey};
use crate::abi::{AddressKey, DropKey, FlowKey, Owner, Port, PortKey, Station, StationKey};
use crate::nat::connection::Direction;
use crate::stages::learn::Heard;
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

/// What became of an entry that was to be new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is there.
    New,
    /// There is one already.
    Exists,
    /// The map takes no more.
    Full,
}

/// A packet that is to be routed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteQuery {
    /// The interface that it comes from, by the kernel's idea: a bridge and not its port.
    pub from: u32,
    /// From whom.
    pub source: Address,
    /// To whom.
    pub destination: Address,
    /// Bytes of it that have to fit, IP header included; 0 for what will be cut to fit.
    pub bytes: u16,
}

/// Where it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Out of this interface.
    pub ifindex: u32,
    /// To this neighbour.
    pub next_hop: Address,
}

/// The maps, as the stages see them. Values are copies: what a stage decides rests on one state of each entry.
pub trait Tables {
    /// The interface that the program runs on.
    fn port(&self, key: &PortKey) -> Option<Port>;

    /// Where a station is.
    fn station(&self, key: &StationKey) -> Option<Station>;

    /// Where a station was heard beyond an uplink.
    fn learned(&self, key: &StationKey) -> Option<Learned>;

    /// Writes that down; false if there is no room.
    fn learn(&self, key: &StationKey, value: &Learned) -> bool;

    /// Forgets it.
    fn unlearn(&self, key: &StationKey);

    /// What has been learned by an uplink.
    fn uplink(&self, key: &PortKey) -> Option<Learning>;

    /// Counts there what came of hearing a station.
    fn note_heard(&self, key: &PortKey, heard: Heard);

    /// Whether an uplink's driver takes frames from another one's (`NICS`). Asked last: the kernel notes the uplink, and sends the
    /// frame there if that is the verdict.
    fn takes(&self, ifindex: u32) -> bool;

    /// Which container has an address.
    fn owner(&self, key: &AddressKey) -> Option<Owner>;

    /// The container that has an address which somebody asks for: its port, and how it is reached; `vid` is that of the bridge's
    /// stations ([`StationKey::vid`]).
    #[inline(always)]
    fn resident(&self, key: &AddressKey, vid: u16) -> Option<(Port, Station)> {
        let owner = self.owner(key)?;
        let port = self.port(&PortKey { ifindex: owner.ifindex })?;
        let station = self.station(&StationKey { bridge: key.bridge, vid, mac: port.mac })?;
        (station.ifindex == owner.ifindex).then_some((port, station))
    }

    /// Whether a port sends and receives a VLAN's frames tagged.
    fn is_tagged(&self, key: &PortKey, vid: u16) -> bool;

    /// A port in VLANs, by its position among its bridge's.
    fn member(&self, key: &MemberKey) -> Option<Member>;

    /// Calls `body` with 0, 1 and so on, `times` at most, until it says false.
    fn repeat(&self, times: u32, body: impl FnMut(u32) -> bool);

    /// Whether a flow is the kernel's.
    fn is_kernel_flow(&self, key: &FlowKey) -> bool;

    /// Remembers that a flow is the kernel's.
    fn note_kernel_flow(&self, key: &FlowKey);

    /// Makes a port ask of each packet whether its flow is the kernel's, from now on.
    fn ask_from_now_on(&self, key: &PortKey);

    /// Nanoseconds of `CLOCK_BOOTTIME`.
    fn boot_time(&self) -> u64;

    /// Where a port of the node leads.
    fn mapping(&self, key: &MappingKey) -> Option<Mapping>;

    /// Whether an address is the node's.
    fn is_local(&self, address: &Address) -> bool;

    /// Shows both directions of a translated connection to `judge`, which says what it makes of them and what becomes of
    /// `mine`, if anything does: then a packet of `bytes` bytes is counted there, too. `other` gets the destination port that
    /// the connection was given. None where an entry is missing, or both are not one connection's.
    fn follow<R>(
        &self,
        mine: &TupleKey,
        other: &mut TupleKey,
        bytes: u32,
        judge: impl FnOnce(Direction, Direction) -> (R, Option<Direction>),
    ) -> Option<R>;

    /// What a packet with this tuple becomes, and whose masqueraded connection it is of ([`Translation::holder`]).
    fn becomes(&self, key: &TupleKey) -> Option<(TupleKey, u32)>;

    /// How an address of a container is masqueraded.
    fn masquerade(&self, key: &AddressKey) -> Option<Masquerade>;

    /// What masqueraded connections get that leave by an interface.
    fn outlet(&self, key: &PortKey) -> Option<Outlet>;

    /// Whether a socket of the node's own would take the answer to a packet with this tuple.
    fn is_spoken_for(&self, tuple: &TupleKey) -> bool;

    /// Makes an entry where there is none.
    fn insert_flow(&self, key: &TupleKey, value: &Translation) -> Inserted;

    /// Makes an entry, or writes over the one that there is.
    fn replace_flow(&self, key: &TupleKey, value: &Translation) -> bool;

    /// Removes an entry.
    fn forget_flow(&self, key: &TupleKey);

    /// Writes down that the first fragment of the datagram with this identification has the tuple `key` and becomes `becomes`.
    fn remember_fragment(&self, identification: [u16; 2], key: &TupleKey, becomes: &TupleKey);

    /// What a datagram's first fragment has become.
    fn fragment(&self, key: &FragmentKey) -> Option<FragmentTranslation>;

    /// Where the kernel would route such a packet; none where it would not, or where it does not fit.
    fn route(&self, query: &RouteQuery) -> Option<Route>;

    /// How what a port sends is limited, by its counter slot.
    fn policer(&self, slot: u32) -> Option<Policer>;

    /// Whether a port's limit is one of what goes there, too.
    fn is_limited(&self, key: &SubnetKey) -> bool;

    /// Nanoseconds of `CLOCK_MONOTONIC`.
    fn now(&self) -> u64;

    /// Sets when all that a port sent is paid for.
    fn begin(&self, slot: u32, due: u64);

    /// Moves that by `nanoseconds`, whoever else does at the same time.
    fn charge(&self, slot: u32, nanoseconds: u64);

    /// Adds one packet of `bytes` bytes to a port's counter.
    fn count(&self, slot: u32, lane: Lane, bytes: u32);

    /// Adds one packet of `bytes` bytes to a drop reason's counter.
    fn count_drop(&self, key: &DropKey, bytes: u32);
}
