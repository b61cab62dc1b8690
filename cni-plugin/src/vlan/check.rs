//! CHECK: the interface as the result of the ADD says it, and what the agent has for it.

use std::path::Path;

use shunt_agent_api::{BridgePort, Request};
use shunt_netlink::link::{Link, Selector};

use super::joined;
use super::master::Master;
use super::share::{self, Wanted};
use crate::agent::Agent;
use crate::call::Call;
use crate::check::Inspection;
use crate::config::{Bridge, Config, ConfigError, Vlan};
use crate::error::{CheckError, Error, Fault};
use crate::ipam::Ipam;
use crate::mac::Mac;
use crate::node::{Node, Sandbox};

/// Compares. `ifname` is the runtime's, which differs from `call.ifname` in a chain.
pub(super) fn check(config: &Config, vlan: &Vlan, call: &Call, ifname: &str) -> Result<(), Error> {
    let missing = ConfigError::NoPrevResult("CHECK compares with the result of the ADD");
    let result = config.prev_result()?.ok_or(missing)?;
    let mut node = Node::open()?;
    let mut sandbox = node.sandbox(Path::new(&call.netns), call.netns_override)?;
    let link = sandbox.link(Selector::Name(&call.ifname))?;
    let Some(link) = link.filter(|link| matches!(link.kind.as_deref(), Some("vlan" | "veth"))) else {
        return Err(CheckError(vec![Fault::NoInterface(call.ifname.clone())]).into());
    };
    let bridge = Bridge::default();
    let inspection = Inspection { config, call, bridge: &bridge, result: &result };
    let mut faults = inspection.inside(&mut sandbox, &link)?;
    let master = Master::find(vlan, ifname, &mut node, &mut sandbox)?;
    if link.kind.as_deref() == Some("vlan") {
        if link.vlan != Some(vlan.vlan_id) || link.peer != Some(master.link.index) {
            let name = link.name.clone();
            faults.push(Fault::OtherVlan { link: name, id: vlan.vlan_id, master: master.link.name });
        }
    } else if faults.is_empty() {
        let wanted = Wanted { config, vlan, call, master: &master, previous: result };
        return host_side(&wanted, &mut node, &sandbox, &link);
    }
    if !faults.is_empty() {
        return Err(CheckError(faults).into());
    }
    Ok(Ipam::of(config, call)?.check()?)
}

fn host_side(wanted: &Wanted<'_>, node: &mut Node, sandbox: &Sandbox, inner: &Link) -> Result<(), Error> {
    let Wanted { config, vlan, call, master, previous: result } = wanted;
    let Some(host) = node.host_end(sandbox, inner)? else {
        return Err(CheckError(vec![Fault::NoHostEnd(call.ifname.clone())]).into());
    };
    if !host.up {
        return Err(CheckError(vec![Fault::HostDown { link: host.name, index: host.index }]).into());
    }
    let (trunk, joins) = master.trunk(vlan, node, sandbox)?;
    let mac = inner.mac.map_or_else(Mac::random, Mac::new);
    let plan = share::plan(config, call, host.mtu, mac, None)?;
    let ips = result.ips_of(&call.ifname).map(|ip| ip.address.addr()).collect();
    let port = BridgePort { ips, ..joined::port(&plan, joins, trunk, &host) };
    Agent::of(config).ask(Request::Check { port })?;
    Ok(Ipam::of(config, call)?.check()?)
}
