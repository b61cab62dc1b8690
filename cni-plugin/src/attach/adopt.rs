//! Another plugin's interface, found in prevResult.

use shunt_agent_api::{BridgePort, Interface};
use shunt_netlink::link::Selector;

use super::{AttachError, Node, Sandbox, plan};
use crate::config::{Bridge, Config};
use crate::error::Error;
use crate::mac::Mac;
use crate::protocol::Call;
use crate::result::{AddResult, Ip};

/// The interface that an earlier plugin of the chain made.
#[derive(Debug)]
pub(crate) struct Adopted {
    /// The port, where the host's end is one of a bridge; a routed veth (`ptp`) has no frames to forward.
    pub(crate) port: Option<BridgePort>,
}

impl Adopted {
    /// Whether `previous` has an interface to adopt; addresses alone are an IPAM's.
    pub(crate) fn is_in(previous: &AddResult, call: &Call) -> bool {
        previous
            .interfaces
            .iter()
            .any(|interface| interface.name == call.ifname && !interface.sandbox.is_empty())
    }

    /// Follows the container's interface to its host's end and that one's bridge.
    pub(crate) fn find(
        node: &mut Node,
        sandbox: &mut Sandbox,
        config: &Config,
        wanted: &Bridge,
        call: &Call,
        previous: &AddResult,
    ) -> Result<Self, Error> {
        let missing =
            |what: &str| AttachError::NotAdoptable(format!("{what} of `{}` is not there", call.ifname));
        let inner =
            sandbox.link(Selector::Name(&call.ifname))?.ok_or_else(|| missing("the container's end"))?;
        let (Some("veth"), Some(peer)) = (inner.kind.as_deref(), inner.peer) else {
            return Ok(Self { port: None });
        };
        let host = node.link(Selector::Index(peer))?.ok_or_else(|| missing("the host's end"))?;
        let Some(master) = host.master else {
            return Ok(Self { port: None });
        };
        let bridge = node.link(Selector::Index(master))?.ok_or_else(|| missing("the bridge"))?;
        if bridge.kind.as_deref() != Some("bridge") {
            return Ok(Self { port: None });
        }
        let position = previous.interfaces.iter().position(|interface| interface.name == call.ifname);
        let own = |ip: &&Ip| ip.interface.is_none() || ip.interface == position;
        let ips = || previous.ips.iter().filter(own);
        let addresses: Vec<_> = ips().map(|ip| ip.address.addr()).collect();
        Ok(Self {
            port: Some(BridgePort {
                key: plan::key(config, call),
                bridge: Interface { name: bridge.name, index: bridge.index },
                host: Interface { name: host.name, index: host.index },
                mac: inner.mac.map(|mac| Mac::new(mac).to_string()).unwrap_or_default(),
                mappings: config.host_ports(&addresses)?,
                ips: addresses,
                mtu: host.mtu,
                netns: Some(call.netns.clone()),
                peer_up: inner.up,
                masquerade: plan::masqueraded(ips(), wanted),
                restrictions: plan::restrictions(wanted),
                bandwidth: config.limits()?,
                service: plan::service(wanted, &plan::gateways_of(ips(), wanted)),
                lease_dir: None,
                vlan: None,
            }),
        })
    }
}
