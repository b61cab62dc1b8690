//! GC: everything of this network that is not on the list goes; other networks are not looked at.

use std::collections::HashMap;

use shunt_agent_api::{AttachmentKey, Request, is_interface_of};
use shunt_netlink::link::{Selector, links};

use crate::agent::{Agent, is_away};
use crate::call::Call;
use crate::config::Config;
use crate::error::Error;
use crate::handed_over;
use crate::ipam::Ipam;
use crate::node::{Alias, Node, names_of};

/// Collects. An absent list is not an empty one: nothing is done.
pub(crate) fn gc(config: &Config, call: &Call) -> Result<(), Error> {
    let Some(valid) = valid(config) else { return Ok(()) };
    let network = &config.network.name;
    let mut failures = Vec::new();
    failures.extend(collect_attachments(config, &valid).err());
    failures.extend(collect_links(network, &valid).err());
    failures.extend(handed_over::collect(Agent::of(config).socket(), network, &valid, call).err());
    let pairs: Vec<(String, String)> = valid.into_iter().map(|key| (key.container, key.ifname)).collect();
    failures.extend(Ipam::of(config, call).and_then(|ipam| ipam.gc(&pairs)).err().map(Error::from));
    match failures.len() {
        0 => Ok(()),
        _ => Err(Error::Several(failures)),
    }
}

/// Collects what the agent has, and leaves links and addresses to the plugins that made them.
pub(crate) fn attachments(config: &Config) -> Result<(), Error> {
    valid(config).map_or(Ok(()), |valid| collect_attachments(config, &valid))
}

/// What is to stay; none without a list.
fn valid(config: &Config) -> Option<Vec<AttachmentKey>> {
    let network = &config.network.name;
    let key = |container: &str, ifname: &str| AttachmentKey {
        network: network.clone(),
        container: container.to_owned(),
        ifname: ifname.to_owned(),
    };
    let valid = config.network.valid_attachments()?;
    Some(valid.iter().map(|one| key(&one.container, &one.ifname)).collect())
}

/// The agent's part. While it is away nothing can be said; it looks for links that are gone when it is back.
fn collect_attachments(config: &Config, valid: &[AttachmentKey]) -> Result<(), Error> {
    let request = Request::Collect { network: config.network.name.clone(), valid: valid.to_vec() };
    match Agent::of(config).ask(request) {
        Err(error) if !is_away(&error) => Err(error.into()),
        _ => Ok(()),
    }
}

/// The links of this network, known by their marks.
fn collect_links(network: &str, valid: &[AttachmentKey]) -> Result<(), Error> {
    let mut node = Node::open()?;
    let mut staying: HashMap<String, Vec<&str>> = HashMap::new();
    for key in valid {
        for name in names_of(&key.container) {
            staying.entry(name).or_default().push(&key.ifname);
        }
    }
    let stays = |mark: &Alias<'_>| {
        let parents = staying.get(mark.container()).into_iter().flatten();
        parents.into_iter().any(|parent| mark.ifname == *parent || is_interface_of(mark.ifname, parent))
    };
    let links = node.netlink.list(links())?;
    let stale = links.iter().filter(|link| {
        let mark = link.alias.as_deref().and_then(Alias::read);
        link.kind.as_deref() == Some("veth") && mark.is_some_and(|mark| mark.is_in(network) && !stays(&mark))
    });
    let mut failures = Vec::new();
    for link in stale {
        failures.extend(node.delete(Selector::Index(link.index)).err().map(Error::from));
    }
    if failures.is_empty() { Ok(()) } else { Err(Error::Several(failures)) }
}
