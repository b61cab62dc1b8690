//! Another plugin's interface, found by prevResult.

use shunt_agent_api::BridgePort;
use shunt_netlink::link::Selector;

use crate::call::Call;
use crate::config::{Bridge, Config, unmasqueraded};
use crate::error::{AttachError, Error};
use crate::mac::Mac;
use crate::node::{Node, Sandbox};
use crate::plan::{gateways_of, interface, key, masqueraded, restrictions, service};
use crate::result::AddResult;

/// Whether `previous` has an interface to adopt; addresses alone are an IPAM's.
pub(crate) fn is_in(previous: &AddResult, call: &Call) -> bool {
    previous.interfaces.iter().any(|interface| interface.name == call.ifname && !interface.sandbox.is_empty())
}

/// The port behind the container's interface, where its host's end is one of a bridge; a routed veth (`ptp`) has no frames to forward.
pub(crate) fn port_found(
    node: &mut Node,
    sandbox: &mut Sandbox,
    config: &Config,
    wanted: &Bridge,
    call: &Call,
    previous: &AddResult,
) -> Result<Option<BridgePort>, Error> {
    let missing = |what: &str| AttachError::NotAdoptable(format!("{what} of `{}` is not there", call.ifname));
    let inner = sandbox.link(Selector::Name(&call.ifname))?.ok_or_else(|| missing("the container's end"))?;
    if inner.kind.as_deref() != Some("veth") {
        return Ok(None);
    }
    let host = node.host_end(sandbox, &inner)?.ok_or_else(|| missing("the host's end"))?;
    let Some(master) = host.master else { return Ok(None) };
    let bridge = node.link(Selector::Index(master))?.ok_or_else(|| missing("the bridge"))?;
    if bridge.kind.as_deref() != Some("bridge") {
        return Ok(None);
    }
    let ips = || previous.ips_of(&call.ifname);
    let addresses: Vec<_> = ips().map(|ip| ip.address.addr()).collect();
    Ok(Some(BridgePort {
        key: key(config, call),
        bridge: interface(&bridge),
        host: interface(&host),
        mac: inner.mac.map(|mac| Mac::new(mac).to_string()).unwrap_or_default(),
        mappings: config.host_ports(&addresses)?,
        ips: addresses,
        mtu: host.mtu,
        netns: Some(call.netns.clone()),
        peer_up: inner.up,
        masquerade: masqueraded(ips(), wanted),
        unmasqueraded: unmasqueraded(wanted)?,
        restrictions: restrictions(wanted),
        bandwidth: config.limits()?,
        service: service(wanted, &gateways_of(ips(), wanted)),
        lease_dir: None,
        vlan: None,
        pod: Some(call.pod()),
    }))
}
