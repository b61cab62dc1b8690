//! The stages of every program, in their order: the one table that `explain`, the documentation and the tests read.

use crate::stage::Stage;

/// A program as it is loaded for a kind of port: each has a pipeline, and a file beside this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pipeline {
    /// [`super::from_container`].
    FromContainer,
    /// [`super::from_member`].
    FromMember,
    /// [`super::to_container`].
    ToContainer,
    /// [`super::to_member`].
    ToMember,
    /// [`super::from_host`].
    FromHost,
    /// [`super::from_mapped`].
    FromMapped,
    /// [`super::from_wire`].
    FromWire,
    /// [`super::from_wire`], of packets without an Ethernet header.
    FromTunnel,
    /// [`super::to_wire`].
    ToWire,
    /// [`super::to_wire`], of packets without an Ethernet header.
    ToTunnel,
    /// [`super::from_vlan`].
    FromVlan,
    /// [`super::from_trunk`].
    FromTrunk,
    /// [`super::to_trunk`].
    ToTrunk,
    /// [`super::from_nic`].
    FromNic,
    /// [`super::from_uplink`].
    FromUplink,
    /// [`super::to_uplink`].
    ToUplink,
    /// [`super::guard_from`].
    GuardFrom,
    /// [`super::guard_to`].
    GuardTo,
}

impl Pipeline {
    /// Every pipeline.
    pub const ALL: [Self; 18] = [
        Self::FromContainer,
        Self::FromMember,
        Self::ToContainer,
        Self::ToMember,
        Self::FromHost,
        Self::FromMapped,
        Self::FromWire,
        Self::FromTunnel,
        Self::ToWire,
        Self::ToTunnel,
        Self::FromVlan,
        Self::FromTrunk,
        Self::ToTrunk,
        Self::FromNic,
        Self::FromUplink,
        Self::ToUplink,
        Self::GuardFrom,
        Self::GuardTo,
    ];

    /// The kernel program that runs it.
    pub const fn program(self) -> &'static str {
        match self {
            Self::FromContainer | Self::FromMember => "from_container",
            Self::ToContainer | Self::ToMember => "to_container",
            Self::FromHost => "from_host",
            Self::FromMapped => "from_mapped",
            Self::FromWire => "from_wire",
            Self::FromTunnel => "from_tunnel",
            Self::ToWire => "to_wire",
            Self::ToTunnel => "to_tunnel",
            Self::FromVlan => "from_vlan",
            Self::FromTrunk => "from_trunk",
            Self::ToTrunk => "to_trunk",
            Self::FromNic => "from_nic",
            Self::FromUplink => "from_uplink",
            Self::ToUplink => "to_uplink",
            Self::GuardFrom => "guard_from",
            Self::GuardTo => "guard_to",
        }
    }

    /// The hook that it runs at.
    pub const fn hook(self) -> &'static str {
        match self {
            Self::FromContainer => "tc ingress of a host veth end",
            Self::FromMember => "tc ingress of a host veth end, on ports in VLANs",
            Self::ToContainer => "tc egress of a host veth end",
            Self::ToMember => "tc egress of a host veth end, on ports in VLANs",
            Self::FromHost => "tc egress of a bridge device",
            Self::FromMapped => "behind `from_container`, on ports with host ports or masquerading",
            Self::FromWire => "tc ingress of an uplink, or of a bridge device",
            Self::FromTunnel => "tc ingress of an uplink without a link layer",
            Self::ToWire => "tc egress of an uplink",
            Self::ToTunnel => "tc egress of an uplink without a link layer",
            Self::FromVlan => "tc ingress of a VLAN interface's host end",
            Self::FromTrunk => "tc ingress of a VLAN interface's master",
            Self::ToTrunk => "tc egress of a host veth end with VLAN interfaces behind it",
            Self::FromNic => "XDP of a bridge's uplink",
            Self::FromUplink => "tc ingress of a bridge's uplink",
            Self::ToUplink => "tc egress of a bridge's uplink",
            Self::GuardFrom => "tc ingress of a restricted port, behind `from_container` and `from_mapped`",
            Self::GuardTo => "tc egress of a restricted port, behind `to_container`",
        }
    }

    /// Its stages, in their order.
    pub const fn stages(self) -> &'static [Stage] {
        use Stage::{
            Accept, Classify, Deliver, Find, FlowAffinity, Guard, Isolate, MacFilter, NeighborProxy,
            OriginCheck, Parse, Police, Port, Retag, SourceGuard, TrackKernelFlow, Translate,
        };
        match self {
            Self::FromContainer => &[
                Port,
                Parse,
                Police,
                SourceGuard,
                MacFilter,
                NeighborProxy,
                Find,
                Isolate,
                FlowAffinity,
                Accept,
                Deliver,
            ],
            Self::FromMember => &[
                Port,
                Parse,
                SourceGuard,
                MacFilter,
                Classify,
                Police,
                NeighborProxy,
                Find,
                Isolate,
                Retag,
                Deliver,
            ],
            Self::ToContainer => &[Port, Parse, OriginCheck, TrackKernelFlow, Accept, Deliver],
            Self::ToUplink => &[Port, Parse, OriginCheck, TrackKernelFlow, Accept, Deliver],
            Self::ToMember => &[Port, Deliver],
            Self::FromHost => &[Port, Parse, NeighborProxy, Find, Isolate, TrackKernelFlow, Accept, Deliver],
            Self::FromMapped => &[Port, Guard, Parse, MacFilter, Find, Translate, Accept, Deliver],
            Self::FromWire | Self::FromTunnel => &[Parse, Translate, Find, Isolate, Accept, Deliver],
            Self::ToWire | Self::ToTunnel => &[Port, Parse, Translate, Accept, Deliver],
            Self::FromVlan => &[Port, Parse, MacFilter, Classify, Police, Find, Retag, Deliver],
            Self::FromTrunk | Self::ToTrunk => &[Parse, Find, Retag, Deliver],
            Self::FromNic => &[Port, Parse, MacFilter, Classify, Find, Retag, Deliver],
            Self::FromUplink => {
                &[Port, Parse, MacFilter, Classify, Find, FlowAffinity, Accept, Retag, Deliver]
            }
            Self::GuardFrom | Self::GuardTo => &[Guard, Port],
        }
    }
}
