//! Where a golden packet meets the dataplane: a pipeline, by the name that golden files have for it.

use shunt_dataplane::abi::PortKey;
use shunt_dataplane::programs::order::Pipeline;
use shunt_dataplane::programs::{
    from_container, from_host, from_mapped, from_member, from_trunk, from_uplink, from_vlan, from_wire,
    guard_from, guard_to, to_container, to_member, to_trunk, to_uplink, to_wire,
};
use shunt_dataplane::stages::port::Missing;
use shunt_dataplane::{Tables as _, Verdict};

use super::bytes_packet::BytesPacket;
use super::memory_tables::MemoryTables;
use super::world;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    FromContainer,
    ToContainer,
    FromHost,
    FromMapped,
    FromWire,
    FromTunnel,
    ToWire,
    ToTunnel,
    /// `from_container` of the programs for ports in VLANs.
    FromMember,
    ToMember,
    FromVlan,
    FromTrunk,
    ToTrunk,
    FromUplink,
    ToUplink,
    GuardFrom,
    GuardTo,
}

impl Entry {
    pub const ALL: [Self; 17] = [
        Self::FromContainer,
        Self::ToContainer,
        Self::FromHost,
        Self::FromMapped,
        Self::FromWire,
        Self::FromTunnel,
        Self::ToWire,
        Self::ToTunnel,
        Self::FromMember,
        Self::ToMember,
        Self::FromVlan,
        Self::FromTrunk,
        Self::ToTrunk,
        Self::FromUplink,
        Self::ToUplink,
        Self::GuardFrom,
        Self::GuardTo,
    ];

    /// The pipeline that it runs.
    pub const fn pipeline(self) -> Pipeline {
        match self {
            Self::FromContainer => Pipeline::FromContainer,
            Self::ToContainer => Pipeline::ToContainer,
            Self::FromHost => Pipeline::FromHost,
            Self::FromMapped => Pipeline::FromMapped,
            Self::FromWire => Pipeline::FromWire,
            Self::FromTunnel => Pipeline::FromTunnel,
            Self::ToWire => Pipeline::ToWire,
            Self::ToTunnel => Pipeline::ToTunnel,
            Self::FromMember => Pipeline::FromMember,
            Self::ToMember => Pipeline::ToMember,
            Self::FromVlan => Pipeline::FromVlan,
            Self::FromTrunk => Pipeline::FromTrunk,
            Self::ToTrunk => Pipeline::ToTrunk,
            Self::FromUplink => Pipeline::FromUplink,
            Self::ToUplink => Pipeline::ToUplink,
            Self::GuardFrom => Pipeline::GuardFrom,
            Self::GuardTo => Pipeline::GuardTo,
        }
    }

    pub const fn program(self) -> &'static str {
        self.pipeline().program()
    }

    /// What the agent puts into `RESTRICTED` for it.
    pub const fn set(self, missing: Missing) -> u32 {
        match (self, missing) {
            (Self::FromMember | Self::ToMember, _) => 2,
            // These are no port's, or say nothing of a missing entry.
            (Self::FromVlan | Self::FromTrunk | Self::ToTrunk | Self::FromUplink | Self::ToUplink, _) => 0,
            (Self::FromHost | Self::FromMapped | Self::FromWire | Self::FromTunnel, _) => 0,
            (Self::ToWire | Self::ToTunnel, _) => 0,
            (Self::GuardFrom | Self::GuardTo, _) => 1,
            (_, Missing::Drop) => 1,
            (_, Missing::Pass) => 0,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::FromMember => "from_member",
            Self::ToMember => "to_member",
            other => other.program(),
        }
    }

    pub fn travel(
        self,
        packet: &mut BytesPacket,
        here: u32,
        missing: Missing,
        tables: &MemoryTables,
    ) -> Verdict {
        packet.host = world::mac(here);
        if let Some(port) = tables.port(&PortKey { ifindex: here }).filter(|_| packet.handed) {
            tables.hand_on(here, &port);
        }
        match self {
            Self::FromContainer => from_container::run(packet, here, missing, tables),
            Self::ToContainer => to_container::run(packet, here, missing, tables),
            Self::FromHost => from_host::run(packet, here, tables),
            Self::FromMapped => {
                let mut handed = tables.handed.get();
                let verdict = from_mapped::run(packet, here, tables, &mut handed);
                tables.handed.set(handed);
                verdict
            }
            Self::FromWire | Self::FromTunnel => from_wire::run(packet, here, tables),
            Self::ToWire | Self::ToTunnel => to_wire::run(packet, here, tables),
            Self::FromMember => from_member::run(packet, here, tables),
            Self::ToMember => to_member::run(packet, here, tables),
            Self::FromVlan => from_vlan::run(packet, here, tables),
            Self::FromTrunk => from_trunk::run(packet, here, tables),
            Self::ToTrunk => to_trunk::run(packet, here, tables),
            Self::FromUplink => from_uplink::run(packet, here, tables),
            Self::ToUplink => to_uplink::run(packet, here, tables),
            Self::GuardFrom => guard_from::run(packet, here, tables),
            Self::GuardTo => guard_to::run(packet, here, tables),
        }
    }
}
