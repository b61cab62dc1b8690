//! Hands host ports and masquerading to the rules of other plugins, attachment by attachment.
//!
//! Their rules are named by network and container, so the DEL of a container that is deleted later finds them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde_json::{Value, json};
use shunt_agent_api::{AttachmentKey, BridgePort, HandedOver, PortMapping};

use super::notes::Notes;
use super::obstacle::Obstacle;
use super::reference::{Asked, ReferencePlugins};
use super::scratch::{self, Scratch};

/// The version that every release of the plugins since 2019 speaks.
const VERSION: &str = "0.4.0";

/// What has been handed over.
#[derive(Debug)]
pub(super) struct Handed {
    notes: Notes,
    host_ports: BTreeMap<AttachmentKey, BridgePort>,
    masquerading: BTreeMap<AttachmentKey, (BridgePort, Scratch)>,
}

impl Handed {
    /// Nothing yet.
    pub(super) fn noted(notes: Notes) -> Self {
        Self { notes, host_ports: BTreeMap::new(), masquerading: BTreeMap::new() }
    }

    /// Hands over what has not been yet. Says what could not be.
    pub(super) fn take(&mut self, ports: &[BridgePort], plugins: &ReferencePlugins) -> Vec<Obstacle> {
        let mut failures = Vec::new();
        for port in ports {
            let failed = |what| move |why| Obstacle::NotHandedOver { key: port.key.clone(), what, why };
            if !port.masquerade.is_empty()
                && plugins.lacking_for_masquerading().is_none()
                && !self.masquerading.contains_key(&port.key)
            {
                failures.extend(self.masquerade(port, plugins).map_err(failed("masquerading")).err());
            }
            if !port.mappings.is_empty()
                && plugins.lacking_for_host_ports().is_none()
                && !self.host_ports.contains_key(&port.key)
            {
                failures.extend(self.map(port, plugins).map_err(failed("host ports")).err());
            }
        }
        failures
    }

    /// Has the plugins remove their rules again.
    pub(super) fn take_back(&mut self, plugins: &ReferencePlugins) {
        let mut failures = Vec::new();
        for port in std::mem::take(&mut self.host_ports).into_values() {
            failures.extend(plugins.portmap("DEL", &mapped(&port)).err());
            self.notes.take(&port.key);
        }
        for (port, scratch) in std::mem::take(&mut self.masquerading).into_values() {
            failures.extend(plugins.bridge("DEL", &masqueraded(&port, scratch.path())).err());
            self.notes.take(&port.key);
        }
        failures.extend(scratch::remove_bridge().err().map(|error| error.to_string()));
        for why in failures {
            tracing::warn!(why, "a rule that was handed over is left");
        }
    }

    /// Keeps the rules; how many attachments have some. What they were made in goes.
    pub(super) fn keep(self) -> usize {
        let keys = self.host_ports.keys().chain(self.masquerading.keys());
        let count = keys.collect::<std::collections::BTreeSet<_>>().len();
        if !self.masquerading.is_empty()
            && let Err(error) = scratch::remove_bridge()
        {
            tracing::warn!(%error, bridge = scratch::BRIDGE, "cannot remove the bridge");
        }
        count
    }

    fn note(&self, noted: HandedOver) -> Result<(), String> {
        let failed = |error| format!("what is handed over cannot be written down: {error}");
        self.notes.put(&noted).map_err(failed)
    }

    fn map(&mut self, port: &BridgePort, plugins: &ReferencePlugins) -> Result<(), String> {
        let asked = mapped(port);
        self.note(HandedOver { host_ports: Some(asked.config), ..self.notes.of(port) })?;
        plugins.portmap("ADD", &mapped(port)).inspect_err(|_| {
            // What it has made before it failed.
            let _nothing_more = plugins.portmap("DEL", &mapped(port));
        })?;
        self.host_ports.insert(port.key.clone(), port.clone());
        Ok(())
    }

    fn masquerade(&mut self, port: &BridgePort, plugins: &ReferencePlugins) -> Result<(), String> {
        let scratch = Scratch::make().map_err(|error| error.to_string())?;
        let asked = masqueraded(port, scratch.path());
        self.note(HandedOver { masquerading: Some(asked.config.clone()), ..self.notes.of(port) })?;
        plugins.bridge("ADD", &asked)?;
        self.masquerading.insert(port.key.clone(), (port.clone(), scratch));
        Ok(())
    }
}

/// Has the plugins remove what an earlier uninstallation handed over of containers that have ended since. What cannot be removed, in
/// words.
pub(super) fn sweep(notes: &Notes, plugins: &ReferencePlugins) -> Vec<String> {
    let stale = match notes.stale() {
        Ok(stale) => stale,
        Err(error) => return vec![format!("the rules that were handed over before: {error}")],
    };
    let mut left = Vec::new();
    for noted in stale {
        match take_stale(&noted, plugins) {
            Ok(()) => notes.take(&noted.key),
            Err(why) => left.push(format!("the rules of {}: {why}", noted.key)),
        }
    }
    left
}

fn take_stale(noted: &HandedOver, plugins: &ReferencePlugins) -> Result<(), String> {
    let key = &noted.key;
    if let Some(config) = noted.host_ports.clone() {
        plugins.portmap("DEL", &Asked { key, netns: PathBuf::new(), config })?;
    }
    if let Some(config) = noted.masquerading.clone() {
        // It removes the rules of the addresses that it finds, so these are there once more.
        let scratch = Scratch::make().map_err(|error| error.to_string())?;
        let asked = Asked { key, netns: scratch.path(), config };
        let asked_twice = plugins.bridge("ADD", &asked).and_then(|()| plugins.bridge("DEL", &asked));
        let removed = scratch::remove_bridge().map_err(|error| error.to_string());
        asked_twice.and(removed)?;
    }
    Ok(())
}

/// What `portmap` is told behind the plugin that made the interface.
fn mapped(port: &BridgePort) -> Asked<'_> {
    let mappings: Vec<_> = port.mappings.iter().map(mapping).collect();
    let netns = port.netns.clone().unwrap_or_default();
    let interface = json!({ "name": port.key.ifname, "mac": port.mac, "sandbox": netns });
    let ips: Vec<_> = port.ips.iter().map(|ip| address(*ip, &port.masquerade, 0)).collect();
    let config = json!({
        "cniVersion": VERSION,
        "name": port.key.network,
        "type": "portmap",
        "snat": true,
        "masqAll": port.mappings.iter().any(|mapping| mapping.masquerade),
        "capabilities": { "portMappings": true },
        "runtimeConfig": { "portMappings": mappings },
        "prevResult": { "cniVersion": VERSION, "interfaces": [interface], "ips": ips },
    });
    Asked { key: &port.key, netns: netns.into(), config }
}

fn mapping(mapping: &PortMapping) -> Value {
    let mut said = json!({
        "hostPort": mapping.host_port,
        "containerPort": mapping.container_port,
        "protocol": mapping.protocol.to_string(),
    });
    if let Some(ip) = mapping.host_ip {
        said["hostIP"] = ip.to_string().into();
    }
    said
}

/// What `bridge` is told of the container's addresses.
fn masqueraded(port: &BridgePort, netns: PathBuf) -> Asked<'_> {
    let within = |ip: &&IpAddr| length_of(**ip, &port.masquerade).is_some();
    let addresses: Vec<_> = port
        .ips
        .iter()
        .filter(within)
        .map(|ip| json!({ "address": address(*ip, &port.masquerade, 0)["address"] }))
        .collect();
    let config = json!({
        "cniVersion": VERSION,
        "name": port.key.network,
        "type": "bridge",
        "bridge": scratch::BRIDGE,
        "ipMasq": true,
        "ipam": { "type": "static", "addresses": addresses },
    });
    Asked { key: &port.key, netns, config }
}

/// An address of a result, with the length of the prefix that it is in.
fn address(ip: IpAddr, prefixes: &[String], interface: usize) -> Value {
    let whole = if ip.is_ipv4() { 32 } else { 128 };
    let length = length_of(ip, prefixes).unwrap_or(whole);
    let version = if ip.is_ipv4() { "4" } else { "6" };
    json!({ "version": version, "address": format!("{ip}/{length}"), "interface": interface })
}

fn length_of(ip: IpAddr, prefixes: &[String]) -> Option<u8> {
    let prefixes = prefixes.iter().filter_map(|prefix| prefix.parse::<IpNet>().ok());
    prefixes.filter(|prefix| prefix.contains(&ip)).map(|prefix| prefix.prefix_len()).max()
}
