//! ADD: what kind of one it is. The interface may be there, another plugin's or of an earlier ADD; most often it has to be made.

use std::path::Path;

use super::add_adopted::adopt;
use super::add_bridged::Bridged;
use super::add_update::Update;
use crate::attach::{Adopted, AttachError, Node, Plan, Site, carry_out};
use crate::config::{Config, ConfigError, Personality};
use crate::error::Error;
use crate::ipam::{Ipam, built_in};
use crate::mac::Mac;
use crate::protocol::Call;
use crate::result::AddResult;

/// Attaches the container, or leaves nothing behind.
pub(crate) fn add(config: &Config, call: &Call) -> Result<AddResult, Error> {
    let bridge = config.bridge()?;
    let mac = requested_mac(config, call)?;
    let ipam = Ipam::of(config, call)?;
    let mut node = Node::open()?;
    let mut sandbox = node.sandbox(Path::new(&call.netns), call.netns_override)?;
    let previous = previous(config)?;
    let existing = sandbox.unlikely_link(&call.ifname)?;
    if previous.as_ref().is_some_and(|previous| Adopted::is_in(previous, call)) {
        return adopt(config, &bridge, call, &mut node, &mut sandbox, previous.unwrap_or_default());
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
    let given = previous.as_ref().filter(|previous| !previous.ips.is_empty());
    let given = given.map(|previous| AddResult { interfaces: Vec::new(), ..previous.clone() });
    let site = Site::new(config, &mut node, &mut sandbox);
    let made = carry_out(&Bridged { config, bridge: &bridge, outline }, &ipam, given, site)?;
    Ok(merge(previous.unwrap_or_default(), made))
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

/// Puts the earlier plugins' interfaces before the new ones.
fn merge(previous: AddResult, mut made: AddResult) -> AddResult {
    let before = previous.interfaces.len();
    for ip in &mut made.ips {
        ip.interface = ip.interface.map(|index| index + before);
    }
    made.interfaces.splice(0..0, previous.interfaces);
    made
}
