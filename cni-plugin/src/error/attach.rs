//! Why an attachment cannot be made.

use std::net::IpAddr;

use ipnet::IpNet;
use shunt_agent_api::AttachmentKey;

use crate::mac::MacError;

/// An attachment cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    /// The container's loopback has an address that is none of a loopback.
    #[error("the loopback interface has the address {address}, which is no loopback address")]
    NoLoopback {
        /// The address.
        address: IpNet,
    },
    /// The interface is there already, and another plugin's or person's.
    #[error("interface `{0}` already exists in the container")]
    InterfaceExists(String),
    /// The interface is there already, and it is this attachment's.
    #[error("{0} is attached already (`updateExisting` would update it)")]
    Attached(AttachmentKey),
    /// The attachment is there, but what it should be now cannot be made of it in place.
    #[error("{key} is attached with another {what}, which cannot be updated in place")]
    OtherFacts {
        /// The attachment.
        key: AttachmentKey,
        /// What differs.
        what: &'static str,
    },
    /// A link with the bridge's name is none.
    #[error("`{0}` already exists but is not a bridge")]
    NotABridge(String),
    /// The kernel's limit of 1023 ports.
    #[error("bridge `{0}` takes no more ports")]
    BridgeFull(String),
    /// The bridge has an address that stands in the way of the gateway's.
    #[error(
        "`{bridge}` already has an IP address different from {wanted}: {found} (`forceAddress` would replace it)"
    )]
    OtherAddress {
        /// The bridge.
        bridge: String,
        /// The address that it should have.
        wanted: IpNet,
        /// The address that it has.
        found: IpNet,
    },
    /// The IPAM gave nothing.
    #[error("IPAM plugin returned missing IP config")]
    NoAddresses,
    /// The IPAM gave an address that the node has as the gateway.
    #[error("{ip} is the gateway's own address, on `{gateway}`")]
    GatewaysAddress {
        /// The address.
        ip: IpAddr,
        /// The interface that has it.
        gateway: String,
    },
    /// Ten random names were all taken.
    #[error("no free name for the host's end of the veth")]
    NoFreeName,
    /// Ten random indexes were all taken.
    #[error("no free index for bridge `{0}`")]
    NoFreeIndex(String),
    /// The `MAC` of CNI_ARGS.
    #[error("CNI_ARGS: {0}")]
    Mac(MacError),
    /// The agent does not know the request that gives an attachment its addresses.
    #[error(
        "the shunt agent is older than this plugin: it cannot give an attachment the addresses of an IPAM that needs \
         the interface first; install the agent of the plugin's release"
    )]
    OldAgent,
    /// A link that was just made is gone again.
    #[error("`{0}` has disappeared")]
    Vanished(String),
    /// Duplicate address detection found another station, or did not end.
    #[error("address {0} is in use by another station, or its detection did not end")]
    Duplicate(IpNet),
    /// The interface in prevResult is not in the container.
    #[error("`prevResult`: {0}")]
    NotAdoptable(String),
    /// The kernel has no VLAN devices.
    #[error("the kernel has no VLAN devices (`dataplane: ebpf` needs none)")]
    NoVlanDevices,
    /// The kernel has one device for a VLAN of a master, at most.
    #[error("VLAN {id} of `{master}` has a device already (`dataplane: ebpf` takes several)")]
    VlanTaken {
        /// The VLAN.
        id: u16,
        /// The master.
        master: String,
    },
    /// No VLAN can be on a master, or none without a VLAN device of the kernel's.
    #[error("no VLAN can be on `{master}`: {why}")]
    Unjoinable {
        /// The master.
        master: String,
        /// What it is.
        why: &'static str,
    },
    /// DEINIT, while containers are attached.
    #[error("`{bridge}` still has {ports} ports")]
    InUse {
        /// The bridge.
        bridge: String,
        /// How many.
        ports: usize,
    },
}
