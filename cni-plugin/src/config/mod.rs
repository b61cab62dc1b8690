//! The network configuration: read once, keys put into the specification's case, then decoded by personality.

mod big_tcp;
mod bridge;
mod canonical;
mod decode;
mod duration;
mod error;
mod host_ports;
mod ingress;
mod lenient;
mod limits;
mod membership;
mod network;
mod personality;
mod portmap;
mod rules;
#[cfg(test)]
mod schema;
mod unmasqueraded;
mod via_agent;
mod vlan;

use std::net::IpAddr;

use serde_json::Value;
use shunt_agent_api::{Bandwidth as Limits, PortMapping as HostPort, TraceParent};

pub(crate) use big_tcp::big_tcp;
pub use bridge::{Bridge, DEFAULT_BRIDGE};
pub use canonical::canonicalise;
pub use error::ConfigError;
pub(crate) use ingress::{filters, ingress_policy, storm_control};
pub(crate) use membership::membership;
pub use network::{Bandwidth, Ipam, Network, PortMapping, RuntimeConfig, ValidAttachment};
pub use personality::{BUILT_IN_IPAM, Personality};
pub(crate) use unmasqueraded::unmasqueraded;
pub use via_agent::DEFAULT_SERVICE;
pub use vlan::{Dataplane, Vlan};

use crate::call::{Verb, Version, check_identifier};
use crate::result::AddResult;
use decode::{decode, text};
use host_ports::Clients;

/// A configuration as it came, and as it is meant.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bytes from standard input; other plugins are given exactly these.
    pub raw: Vec<u8>,
    /// The same, with keys in the specification's case.
    pub value: Value,
    /// What every configuration has.
    pub network: Network,
    /// The version of the result that the caller expects.
    pub version: Version,
    /// Who the plugin is to be.
    pub personality: Personality,
    /// Of which trace the call is a part.
    pub trace: Option<TraceParent>,
}

impl Config {
    /// Reads standard input's bytes into an object with keys in the specification's case.
    ///
    /// # Errors
    /// [`ConfigError::Json`].
    pub fn parse(raw: &[u8]) -> Result<Value, ConfigError> {
        let mut value: Value =
            serde_json::from_slice(raw).map_err(|error| ConfigError::Json(error.to_string()))?;
        if !value.is_object() {
            return Err(ConfigError::Json("it is not an object".to_owned()));
        }
        canonicalise(&mut value);
        Ok(value)
    }

    /// Understands what [`parse`](Self::parse) made of `raw`. `program` is the name under which the plugin was called.
    ///
    /// # Errors
    /// [`ConfigError`], in the order in which the reference plugins would find fault. For a DEL, values of the wrong type
    /// are none.
    pub fn read(raw: Vec<u8>, mut value: Value, program: &str, verb: Verb) -> Result<Self, ConfigError> {
        let name = text(&value, "name")?;
        if name.is_empty() {
            return Err(ConfigError::NoName);
        }
        check_identifier("network name", name)?;
        let version: Version = text(&value, "cniVersion")?.parse()?;
        let network = if verb == Verb::Del { lenient::decode(&mut value)? } else { decode(&value)? };
        let ipam = network.ipam.as_ref().map_or("", |ipam| &ipam.r#type);
        let personality = if Personality::is_ipam_call(program, &network.r#type, ipam) {
            Personality::Ipam
        } else {
            Personality::of_type(&network.r#type)
                .ok_or_else(|| ConfigError::NoPersonality(network.r#type.clone()))?
        };
        Ok(Self { raw, value, network, version, personality, trace: None })
    }

    /// The version that an error about the rest of it is to carry.
    pub fn version_of(value: &Value) -> Version {
        let text = value.get("cniVersion").and_then(Value::as_str);
        text.and_then(|text| text.parse().ok()).unwrap_or(Version::NEWEST)
    }

    /// The keys of a bridge's port, checked.
    ///
    /// # Errors
    /// [`ConfigError::Type`], [`ConfigError::Invalid`], [`ConfigError::NotBuilt`].
    pub fn bridge(&self) -> Result<Bridge, ConfigError> {
        let bridge = self.bridge_unchecked()?;
        rules::check_bridge(&self.network, &bridge)?;
        self.limits()?;
        self.host_ports(&[])?;
        Ok(bridge)
    }

    /// The keys of a bridge's port as they are: what ADD would refuse must not keep a DEL from its work.
    ///
    /// # Errors
    /// [`ConfigError::Type`].
    pub fn bridge_unchecked(&self) -> Result<Bridge, ConfigError> {
        let mut bridge: Bridge = decode(&self.value)?;
        bridge.is_gateway |= bridge.is_default_gateway;
        if bridge.bridge.is_empty() {
            DEFAULT_BRIDGE.clone_into(&mut bridge.bridge);
        }
        Ok(bridge)
    }

    /// Whether the attachment is a VLAN's interface.
    pub fn is_vlan(&self) -> bool {
        let mode = || self.value.get("mode").and_then(Value::as_str);
        match self.personality {
            Personality::Vlan => true,
            Personality::Shunt => mode() == Some("vlan"),
            _ => false,
        }
    }

    /// The keys of a VLAN's interface, checked.
    ///
    /// # Errors
    /// [`ConfigError::Type`], [`ConfigError::Invalid`], [`ConfigError::NotBuilt`].
    pub fn vlan(&self) -> Result<Vlan, ConfigError> {
        let vlan = self.vlan_unchecked()?;
        vlan::check(&vlan, &self.value)?;
        self.limits()?;
        if !self.host_ports(&[])?.is_empty() {
            return Err(ConfigError::NotBuilt { key: "portMappings" });
        }
        Ok(vlan)
    }

    /// The keys of a VLAN's interface as they are: what ADD would refuse must not keep a DEL from its work.
    ///
    /// # Errors
    /// [`ConfigError::Type`].
    pub fn vlan_unchecked(&self) -> Result<Vlan, ConfigError> {
        decode(&self.value)
    }

    /// What the container may send and receive.
    ///
    /// # Errors
    /// [`ConfigError::Type`], [`ConfigError::Invalid`].
    pub fn limits(&self) -> Result<Limits, ConfigError> {
        limits::of(decode(&self.value)?, self.network.runtime_config.bandwidth.clone())
    }

    /// Whether host ports are this plugin's business, be it that there shall be none. Else one further down the chain may look
    /// after them.
    pub fn is_asked_for_host_ports(&self) -> bool {
        let is_given = self.value.pointer("/runtimeConfig/portMappings").is_some();
        is_given || self.network.capabilities.get("portMappings") == Some(&true.into())
    }

    /// Which of the node's ports lead to a container with these addresses.
    ///
    /// # Errors
    /// [`ConfigError::Type`], [`ConfigError::Invalid`], [`ConfigError::NotBuilt`].
    pub fn host_ports(&self, ips: &[IpAddr]) -> Result<Vec<HostPort>, ConfigError> {
        let mappings = &self.network.runtime_config.port_mappings;
        let ports = if self.personality == Personality::Portmap {
            let portmap = decode(&self.value)?;
            portmap::check(&portmap)?;
            portmap::narrow(&portmap, host_ports::of(mappings, portmap::clients(&portmap))?)?
        } else {
            host_ports::of(mappings, Clients::Routed)?
        };
        Ok(host_ports::answered_by(ports, ips))
    }

    /// The result of the plugins before this one.
    ///
    /// # Errors
    /// [`ConfigError::PrevResult`].
    pub fn prev_result(&self) -> Result<Option<AddResult>, ConfigError> {
        let Some(previous) = &self.network.prev_result else {
            return Ok(None);
        };
        Ok(Some(AddResult::from_json(&Value::Object(previous.clone()), self.version)?))
    }

    /// The `ipam` object; empty when there is none.
    pub fn ipam(&self) -> &Value {
        self.value.get("ipam").unwrap_or(&Value::Null)
    }

    /// Whether addresses come from this process.
    pub fn built_in_ipam(&self) -> bool {
        self.personality == Personality::Ipam || self.ipam_type() == Some(BUILT_IN_IPAM)
    }

    /// The IPAM plugin's name, if there is to be one.
    pub fn ipam_type(&self) -> Option<&str> {
        self.network.ipam.as_ref().map(|ipam| ipam.r#type.as_str()).filter(|name| !name.is_empty())
    }
}
