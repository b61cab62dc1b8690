//! ADD: what kind of one it is. The interface may be there, another plugin's or of an earlier ADD; most often it has to be made.

mod bridge;
mod bridged;
mod container;
mod context;
mod forwarding;
mod packets;
mod procedure;
mod update;
mod veth;
mod wait;

use std::path::Path;

use shunt_netlink::link::Selector;

pub(crate) use bridge::ensure_bridge;
pub(crate) use container::{announce, configure};
pub(crate) use context::Context;
pub(crate) use procedure::{Attachment, make_attachment};
pub(crate) use veth::{disable_ipv6, inner, make_veth};
pub(crate) use wait::wait_for_addresses;

use crate::adopt::{self, adopt};
use crate::agent::Agent;
use crate::call::Call;
use crate::config::{Bridge, Config, ConfigError, Personality};
use crate::error::{AttachError, Error};
use crate::ipam::{Ipam, built_in};
use crate::mac::Mac;
use crate::node::{Node, NodeError, Sandbox};
use crate::plan::Plan;
use crate::result::AddResult;
use bridged::Bridged;
use update::Update;

/// Attaches the container, or leaves nothing behind.
pub(crate) fn add(config: &Config, call: &Call) -> Result<AddResult, Error> {
    let bridge = config.bridge()?;
    let mac = requested_mac(config, call)?;
    let ipam = Ipam::of(config, call)?;
    let (mut node, mut sandbox) = enter(call)?;
    let previous = previous(config)?;
    if let Some(previous) = previous.as_ref().filter(|previous| adopt::is_in(previous, call)) {
        let mut agent = Agent::of(config);
        return adopt(config, &bridge, call, &mut node, &mut sandbox, &mut agent, previous.clone());
    }
    if let Some(link) = sandbox.link(Selector::Name(&call.ifname))? {
        let requested = built_in::requested(config, call)?;
        let update = Update { config, call, bridge: &bridge, mac, requested };
        return update.run(&mut node, &mut sandbox, &link);
    }
    let (bridged, given) = planned(config, call, &bridge, mac, &ipam, previous.as_ref())?;
    let mut context = Context::new(node, sandbox, Agent::connect(config)?);
    let made = make_attachment(&bridged, &ipam, given, &mut context)?;
    Ok(merge(previous.unwrap_or_default(), made, &call.ifname))
}

/// Opens the node's namespace and the container's.
fn enter(call: &Call) -> Result<(Node, Sandbox), NodeError> {
    let node = Node::open()?;
    let sandbox = node.sandbox(Path::new(&call.netns), call.netns_override)?;
    Ok((node, sandbox))
}

/// What is to be made, and with which addresses if an earlier plugin has given them.
fn planned<'a>(
    config: &'a Config,
    call: &Call,
    bridge: &'a Bridge,
    mac: Option<Mac>,
    ipam: &Ipam<'_>,
    previous: Option<&AddResult>,
) -> Result<(Bridged<'a>, Option<AddResult>), Error> {
    let given =
        previous.map(|previous| previous.given_to(&call.ifname)).filter(|given| !given.ips.is_empty());
    if ipam.exists() && given.is_some() {
        let why = "cannot be set where prevResult has addresses already".to_owned();
        return Err(ConfigError::Invalid { key: "ipam", why }.into());
    }
    let outline = Plan::new(config, call, bridge, mac.unwrap_or_else(Mac::random))?;
    Ok((Bridged { config, bridge, outline }, given))
}

/// The earlier plugins' result. The reference bridge plugin pays no attention to it.
fn previous(config: &Config) -> Result<Option<AddResult>, Error> {
    match config.personality {
        Personality::Shunt => Ok(config.prev_result()?),
        _ => Ok(None),
    }
}

/// The container's address by the reference plugin's precedence.
fn requested_mac(config: &Config, call: &Call) -> Result<Option<Mac>, AttachError> {
    let given = |mac: &Option<String>| mac.clone().filter(|mac| !mac.is_empty());
    let network = &config.network;
    let configured = given(&network.runtime_config.mac).or_else(|| given(&network.args.cni.mac));
    let requested = configured.or_else(|| call.arguments.mac.clone());
    requested.map(|mac| mac.parse().map_err(AttachError::Mac)).transpose()
}

/// Puts the earlier plugins' interfaces before the new ones, and the addresses of those behind the new ones'.
fn merge(previous: AddResult, mut made: AddResult, ifname: &str) -> AddResult {
    let before = previous.interfaces.len();
    for ip in &mut made.ips {
        ip.interface = ip.interface.map(|index| index + before);
    }
    made.ips.extend(previous.ips.iter().filter(|ip| !previous.is_given(ip, ifname)).cloned());
    made.interfaces.splice(0..0, previous.interfaces);
    made
}
