//! ADD: a veth pair from the container to a port of the bridge, handed to the agent before it carries a packet.

use std::path::Path;

use shunt_agent_api::{AgentError, Client, ClientError, ErrorKind, Reply, Request};

use super::add_adopted::adopt;
use super::add_update::Update;
use super::metadata;
use crate::agent;
use crate::attach::{
    Adopted, AttachError, Found, Journal, Node, Plan, Sandbox, Step, complete, ensure_bridge, make_veth,
    port_of, prepare, put_into_service, wait_for_addresses,
};
use crate::config::{Config, ConfigError, Personality};
use crate::error::Error;
use crate::ipam::{Ipam, built_in};
use crate::mac::Mac;
use crate::netlink::{Link, Selector, requests};
use crate::protocol::Call;
use crate::result::{AddResult, Interface};

/// Attaches the container, or leaves nothing behind.
pub(crate) fn add(config: &Config, call: &Call) -> Result<AddResult, Error> {
    let bridge = config.bridge()?;
    let mac = requested_mac(config, call)?;
    let ipam = Ipam::of(config, call)?;
    let mut node = Node::open()?;
    let mut sandbox = node.sandbox(Path::new(&call.netns), call.netns_override)?;
    let previous = previous(config)?;
    let existing = sandbox.link(Selector::Name(&call.ifname))?;
    if previous.as_ref().is_some_and(|previous| Adopted::is_in(previous, call)) {
        let mut agent = agent::connect(config)?;
        return adopt(
            config,
            &bridge,
            call,
            &mut node,
            &mut sandbox,
            &mut agent,
            previous.unwrap_or_default(),
        );
    }
    if let Some(existing) = existing {
        let requested = built_in::requested(config, call)?;
        return Update { config, call, bridge: &bridge, mac, requested }.run(
            &mut node,
            &mut sandbox,
            &existing,
        );
    }
    if ipam.exists() && previous.as_ref().is_some_and(|previous| !previous.ips.is_empty()) {
        let why = "cannot be set where prevResult has addresses already".to_owned();
        return Err(ConfigError::Invalid { key: "ipam", why }.into());
    }
    let mac = mac.unwrap_or_else(Mac::random);
    let outline = Plan::new(config, call, &bridge, mac)?;
    let mut agent = agent::connect(config)?;
    let mut journal = Journal::default();
    let mut make = || {
        let early = early(&ipam, &outline, &mut node, &mut sandbox, &mut agent, &mut journal)?;
        let addresses = addresses(&ipam, previous.as_ref(), &mut journal);
        if early.is_some() {
            // A DHCP server may be waited for longer than the agent keeps a connection on which nothing is said.
            agent = agent::connect(config)?;
        }
        let plan = outline.clone().with(config, &bridge, addresses?)?;
        plan.result.can_be_said_in(config.version)?;
        execute(config, &plan, early.as_ref(), &mut node, &mut sandbox, &mut agent, &mut journal).inspect_err(
            |_| {
                if let Some(Ends { bridge, host }) = &early {
                    // By it the addresses are given back.
                    let _ = attach(&outline, bridge, host, &mut node, &mut sandbox, &mut agent, &mut journal);
                }
            },
        )
    };
    match make() {
        Ok(made) => Ok(merge(previous.unwrap_or_default(), made)),
        Err(error) => Err(error.after_undo(journal.undo(&mut node, &mut agent, &ipam))),
    }
}

/// What an attachment connects: the bridge, and the host's end of the pair.
#[derive(Debug)]
struct Ends {
    bridge: Found,
    host: Link,
}

/// Attaches the container without addresses where the IPAM has to find an interface that works, as a DHCP client does. Restrictions
/// hold already: whoever has no address may ask for one. With the addresses it is attached once more, and its link is down meanwhile.
fn early(
    ipam: &Ipam<'_>,
    outline: &Plan,
    node: &mut Node,
    sandbox: &mut Sandbox,
    agent: &mut Client,
    journal: &mut Journal,
) -> Result<Option<Ends>, Error> {
    if !ipam.needs_interface() {
        return Ok(None);
    }
    let _lock = node.lock_shared()?;
    let ends = make_ends(outline, node, sandbox, journal)?;
    let attached = attach(outline, &ends.bridge, &ends.host, node, sandbox, agent, journal);
    attached.inspect_err(|_| leave(node, &ends.host))?;
    Ok(Some(ends))
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

/// Addresses from the IPAM, or those that an IPAM earlier in the chain gave; none on a layer 2 network.
fn addresses(
    ipam: &Ipam<'_>,
    previous: Option<&AddResult>,
    journal: &mut Journal,
) -> Result<Option<AddResult>, Error> {
    match previous.filter(|previous| !previous.ips.is_empty()) {
        Some(previous) => Ok(Some(AddResult { interfaces: Vec::new(), ..previous.clone() })),
        None if !ipam.exists() => Ok(None),
        None => {
            // A plugin that failed may hold addresses nevertheless; the built-in one gives back what it took.
            if ipam.is_delegate() {
                journal.push(Step::Addresses);
            }
            let addresses = ipam.add()?;
            if !ipam.is_delegate() {
                journal.push(Step::Addresses);
            }
            Ok(Some(addresses))
        }
    }
}

fn execute(
    config: &Config,
    plan: &Plan,
    early: Option<&Ends>,
    node: &mut Node,
    sandbox: &mut Sandbox,
    agent: &mut Client,
    journal: &mut Journal,
) -> Result<AddResult, Error> {
    let _lock = node.lock_shared()?;
    let made;
    let Ends { bridge, host } = match early {
        Some(ends) => {
            node.netlink.ask(requests::set_down(ends.host.index))?;
            agent.ask(Request::Detach { key: plan.key.clone(), link: None })?;
            ends
        }
        None => {
            made = make_ends(plan, node, sandbox, journal)?;
            &made
        }
    };
    let completed = match bridge.serves {
        true => Ok(()),
        false => complete(node, bridge, &plan.bridge, agent, journal),
    };
    let attached = completed.and_then(|()| attach(plan, bridge, host, node, sandbox, agent, journal));
    let attached = attached.inspect_err(|_| leave(node, host));
    let (bridge, host, attached) = attached?;
    let mut made = result(config, plan, &bridge, &host, &attached);
    made.interfaces.extend(gateway(node, plan)?);
    Ok(made)
}

/// Takes the host's end off the bridge: whoever made that looks for ports on it as soon as the lock is gone, and this one will be none.
fn leave(node: &mut Node, host: &Link) {
    let _ = node.netlink.ask(requests::enslave(host.index, 0));
}

fn make_ends(plan: &Plan, node: &mut Node, sandbox: &Sandbox, journal: &mut Journal) -> Result<Ends, Error> {
    let mut bridge = ensure_bridge(node, &plan.bridge, journal)?;
    let host = make_veth(node, sandbox, plan, bridge.unused.take(), journal)?;
    Ok(Ends { bridge, host })
}

/// Has the agent take the port, and puts it into service; answers bridge and host's end as they then are, and what the agent said.
fn attach(
    plan: &Plan,
    found: &Found,
    host: &Link,
    node: &mut Node,
    sandbox: &mut Sandbox,
    agent: &mut Client,
    journal: &mut Journal,
) -> Result<(Link, Link, Reply), Error> {
    let inner = host.peer.ok_or_else(|| AttachError::Vanished(host.name.clone()))?;
    // The agent works while both ends are configured. Nothing reaches the container or leaves it before all is done.
    journal.push_attached(&plan.key);
    agent.send(Request::Attach { port: port_of(plan, &found.link, host) })?;
    let enrolled = prepare(node, sandbox, plan, found, host, inner);
    let attached = agent.receive().inspect_err(|error| {
        if matches!(error, ClientError::Refused(AgentError { kind: ErrorKind::Exists, .. })) {
            // What is attached under this key is not this ADD's to detach.
            journal.withdraw_attached();
        }
    })?;
    let enrolled = enrolled?;
    if found.serves && !enrolled {
        complete(node, found, &plan.bridge, agent, journal)?;
    }
    let mut bridge = found.link.clone();
    if plan.bridge.heir_of.is_some() {
        // It may have the uplink's address by now.
        let asked = node.link(Selector::Index(bridge.index))?;
        bridge = asked.ok_or_else(|| AttachError::Vanished(plan.bridge.name.clone()))?;
    }
    let host = put_into_service(node, sandbox, plan, &bridge, host, enrolled)?;
    wait_for_addresses(sandbox, plan, inner)?;
    Ok((bridge, host, attached))
}

/// The VLAN's gateway, as the reference plugin has it in its result: behind the container's interface.
fn gateway(node: &mut Node, plan: &Plan) -> Result<Option<Interface>, Error> {
    let Some(name) = plan.bridge.vlan_gateway.as_ref().filter(|_| !plan.bridge.gateways.is_empty()) else {
        return Ok(None);
    };
    let link = node.link(Selector::Name(name))?.ok_or_else(|| AttachError::Vanished(name.clone()))?;
    Ok(Some(on_node(&link)))
}

pub(super) fn on_node(link: &Link) -> Interface {
    Interface {
        name: link.name.clone(),
        mac: link.mac.map(|mac| mac.to_string()).unwrap_or_default(),
        mtu: Some(link.mtu),
        ..Interface::default()
    }
}

fn result(config: &Config, plan: &Plan, bridge: &Link, host: &Link, attached: &Reply) -> AddResult {
    let container = Interface {
        name: plan.key.ifname.clone(),
        mac: plan.mac.to_string(),
        mtu: Some(host.mtu),
        sandbox: plan.netns.clone(),
        metadata: metadata::of(config, "bridge", &plan.limits, attached),
        ..Interface::default()
    };
    AddResult { interfaces: vec![on_node(bridge), on_node(host), container], ..plan.result.clone() }
}

/// Puts the earlier plugins' interfaces before the new ones.
fn merge(previous: AddResult, mut made: AddResult) -> AddResult {
    let before = previous.interfaces.len();
    for ip in &mut made.ips {
        ip.interface = ip.interface.map(|index| index + before);
    }
    made.interfaces.splice(0..0, previous.interfaces);
    made
}
