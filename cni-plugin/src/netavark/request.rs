//! A `setup` or `teardown` as the CNI configuration that says the same.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::addresses;
use super::error::NetavarkError;
use super::network::Network;
use super::options::{Options, refuse_of_container};
use super::ports::{PortMapping, mappings};
use crate::call::Version;

/// A container on one network.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Exec {
    pub(super) container_id: String,
    #[serde(default)]
    pub(super) container_name: String,
    #[serde(default)]
    port_mappings: Option<Vec<PortMapping>>,
    pub(super) network: Network,
    pub(super) network_options: PerContainer,
}

/// What is this container's own.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PerContainer {
    pub(super) interface_name: String,
    #[serde(default)]
    static_ips: Option<Vec<IpAddr>>,
    #[serde(default)]
    static_mac: Option<String>,
    #[serde(default)]
    options: Option<BTreeMap<String, String>>,
}

impl Exec {
    /// `CNI_ARGS`: the container's name, as podman says it to CNI plugins.
    pub(super) fn arguments(&self) -> String {
        // A name with these characters would be two arguments.
        let name = Some(&self.container_name).filter(|name| !name.is_empty() && !name.contains([';', '=']));
        name.map_or_else(String::new, |name| format!("IgnoreUnknown=1;K8S_POD_NAME={name}"))
    }
}

/// What every call says of the network.
fn outline(network: &Network) -> Map<String, Value> {
    let mut config = Map::new();
    config.insert("cniVersion".to_owned(), json!(Version::NEWEST.as_str()));
    config.insert("name".to_owned(), json!(network.name));
    config.insert("type".to_owned(), json!("shunt"));
    config
}

/// The configuration for an ADD.
///
/// # Errors
/// What cannot be meant, or is not served.
pub(super) fn configuration(exec: &Exec) -> Result<Value, NetavarkError> {
    let Exec { network, network_options: own, .. } = exec;
    refuse_of_container(own.options.as_ref())?;
    let options = Options::read(network.options.as_ref())?;
    let given = addresses::given(network, &options, own.static_ips.as_deref().unwrap_or_default())?;
    let is_routed = given.iter().flat_map(|given| &given.ips).any(|ip| ip.gateway.is_some());
    let mut config = outline(network);
    config.insert("bridge".to_owned(), json!(network.bridge()?));
    config.insert("isGateway".to_owned(), json!(is_routed));
    config.insert("ipMasq".to_owned(), json!(is_routed && !network.internal));
    config.extend(options.keys);
    if let Some(given) = given {
        let mut previous = json!(given);
        previous["cniVersion"] = json!(Version::NEWEST.as_str());
        config.insert("prevResult".to_owned(), previous);
    }
    let mut arguments = Map::new();
    if let Some(mac) = own.static_mac.as_deref().filter(|mac| !mac.is_empty()) {
        arguments.insert("mac".to_owned(), json!(mac));
    }
    // As with netavark's own bridge nobody outside reaches an internal network.
    if !network.internal {
        let published = mappings(exec.port_mappings.as_deref().unwrap_or_default())?;
        arguments.insert("portMappings".to_owned(), json!(published));
    }
    config.insert("runtimeConfig".to_owned(), json!(arguments));
    Ok(Value::Object(config))
}

/// The configuration for a DEL: what a `setup` would refuse must not keep a `teardown` from its work.
pub(super) fn minimum(exec: &Exec) -> Value {
    let mut config = outline(&exec.network);
    if let Ok(bridge) = exec.network.bridge() {
        config.insert("bridge".to_owned(), json!(bridge));
    }
    let socket = exec.network.options.as_ref().and_then(|options| options.get("shunt.agentSocket"));
    if let Some(socket) = socket {
        config.insert("agentSocket".to_owned(), json!(socket));
    }
    Value::Object(config)
}
