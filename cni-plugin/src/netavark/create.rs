//! `create`: completes a network that podman is about to keep, or says why no container could be attached to it.

use serde_json::{Map, Value, json};

use super::addresses::route;
use super::error::{NetavarkError, invalid};
use super::network::{Ipam, Network};
use super::options::Options;
use crate::call::check_identifier;
use crate::config::Config;
use crate::error::Error;

/// The network with its defaults. Fields that mean nothing here stay as they are.
///
/// # Errors
/// What a `setup` would refuse, and a network that has addresses and no subnet.
pub(super) fn create(mut asked: Map<String, Value>) -> Result<Value, NetavarkError> {
    let network: Network =
        serde_path_to_error::deserialize(Value::Object(asked.clone())).map_err(|error| {
            NetavarkError::Json { key: error.path().to_string(), why: error.inner().to_string() }
        })?;
    check(&network)?;
    asked.insert("network_interface".to_owned(), json!(network.bridge()?));
    // aardvark-dns serves netavark's own drivers only.
    asked.insert("dns_enabled".to_owned(), json!(false));
    let subnets = network.subnets()?;
    if let Some(Value::Array(kept)) = asked.get_mut("subnets") {
        for (kept, (_, gateway)) in kept.iter_mut().zip(&subnets) {
            if let Some(gateway) = gateway {
                kept["gateway"] = json!(gateway);
            }
        }
    }
    asked.insert("ipv6_enabled".to_owned(), json!(subnets.iter().any(|(subnet, _)| subnet.addr().is_ipv6())));
    let driver = if network.ipam()? == Ipam::None { "none" } else { "host-local" };
    let ipam = asked.entry("ipam_options").or_insert(Value::Null);
    if ipam.is_null() {
        *ipam = json!({});
    }
    ipam["driver"] = json!(driver);
    Ok(Value::Object(asked))
}

fn check(network: &Network) -> Result<(), NetavarkError> {
    check_identifier("network name", &network.name).map_err(|error| invalid("name", error.to_string()))?;
    let options = Options::read(network.options.as_ref())?;
    if network.network_dns_servers.as_ref().is_some_and(|servers| !servers.is_empty()) {
        let cure = "no name server of podman's serves it; give the servers to the containers (--dns)";
        return Err(NetavarkError::NotServed { key: "network_dns_servers".to_owned(), cure });
    }
    let has_subnets = !network.subnets()?.is_empty();
    match network.ipam()? {
        Ipam::Netavark if !has_subnets => {
            let why = "the network has none, and podman chooses none for a plugin: give --subnet (or --ipam-driver none)";
            return Err(invalid("subnets", why));
        }
        Ipam::None if has_subnets => {
            return Err(invalid("subnets", "a network without an IPAM (--ipam-driver none) has none"));
        }
        _ => {}
    }
    network.routes.iter().flatten().try_for_each(|each| route(each).map(drop))?;
    check_keys(network, &options)
}

/// The keys as the ADD of the first container would find them.
fn check_keys(network: &Network, options: &Options) -> Result<(), NetavarkError> {
    let mut config =
        json!({ "cniVersion": "1.1.0", "name": network.name, "type": "shunt", "bridge": network.bridge()? });
    for (key, value) in &options.keys {
        config[key] = value.clone();
    }
    let raw = config.to_string().into_bytes();
    let value = Config::parse(&raw).map_err(Error::from)?;
    let read = Config::read(raw, value, "shunt", crate::call::Verb::Validate).map_err(Error::from)?;
    read.bridge().map_err(Error::from)?;
    Ok(())
}
