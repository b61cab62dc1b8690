//! Lets aya hand the map types to the kernel as plain bytes.

use super::fragment::{FragmentKey, FragmentTranslation};
use super::learning::{Learned, Learning};
use super::policer::{Policer, SubnetKey};
use super::share::Share;
use super::translation::{
    Local, LocalKey, Mapping, MappingKey, Masquerade, Outlet, Peer, PeerKey, SourceKey, Translation, TupleKey,
};
use super::vlan::{Member, MemberKey, TaggedVlans};
use super::watch::{Watch, WatchBudget};
use super::{
    AcceptedFlow, AddressKey, Alias, AliasKey, Count, Decision, DropKey, FlowKey, HandedOn, Heeding,
    KernelFlow, KernelShare, LinkLocal, Marks, Owner, Port, PortCounters, PortKey, ReversePath, Station,
    StationKey,
};

use crate::wire::address::Address;

macro_rules! pod {
    ($($name:ty),* $(,)?) => { $(
        // SAFETY: `repr(C)`, `Copy`, integers and byte arrays only; `IntoBytes` is not derived where there is hidden padding.
        unsafe impl aya::Pod for $name {}
    )* };
}

pod!(
    Marks,
    PortKey,
    HandedOn,
    Port,
    StationKey,
    Station,
    AddressKey,
    Owner,
    AliasKey,
    Alias,
    ReversePath,
    LinkLocal,
    FlowKey,
    AcceptedFlow,
    Heeding,
    KernelFlow,
    KernelShare,
    Count,
    PortCounters,
    DropKey,
    Decision,
    LocalKey,
    Local,
    Policer,
    Share,
    SubnetKey,
    MappingKey,
    Mapping,
    PeerKey,
    Peer,
    TupleKey,
    Translation,
    MemberKey,
    Member,
    TaggedVlans,
    Learned,
    Learning,
    FragmentKey,
    FragmentTranslation,
    Masquerade,
    Outlet,
    SourceKey,
    Address,
    Watch,
    WatchBudget,
);
