//! A network's options: netavark's own, and those of shunt's keys, as `shunt.ipspoofchk=true`.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use super::error::{NetavarkError, invalid};

/// Before the name of a CNI key.
const OWN: &str = "shunt.";

/// The metric of a default route, as netavark's drivers have it.
const DEFAULT_METRIC: u32 = 100;

/// The CNI key of isolation.
const POLICY: &str = "ingressPolicy";

/// The CNI keys that an option may set. Others follow from the network.
const KEYS: [&str; 24] = [
    "agentSocket",
    "bigTcp",
    "egressBurst",
    "egressRate",
    "enabledad",
    "filters",
    "forceAddress",
    "hairpinMode",
    "ingressBurst",
    "ingressPolicy",
    "ingressRate",
    "ipspoofchk",
    "macspoofchk",
    "nonMasqueradeCIDRs",
    "portIsolation",
    "preserveDefaultVlan",
    "promiscMode",
    "shapedSubnets",
    "stormControl",
    "trusted",
    "unshapedSubnets",
    "uplink",
    "vlanTrunk",
    "vlans",
];

/// What options say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    /// CNI keys with their values.
    pub(super) keys: Map<String, Value>,
    /// Of the default routes.
    pub(super) metric: u32,
    pub(super) has_default_route: bool,
}

impl Options {
    /// Reads them.
    ///
    /// # Errors
    /// What cannot be meant, is nobody's option, or is not served.
    pub(super) fn read(options: Option<&BTreeMap<String, String>>) -> Result<Self, NetavarkError> {
        let mut read = Self { keys: Map::new(), metric: DEFAULT_METRIC, has_default_route: true };
        // The default of netavark 2: nothing comes from other networks.
        read.isolate("strict")?;
        for (name, text) in options.into_iter().flatten() {
            read.take(name, text)?;
        }
        Ok(read)
    }

    fn take(&mut self, name: &str, text: &str) -> Result<(), NetavarkError> {
        match name {
            "mtu" | "com.docker.network.driver.mtu" => {
                self.keys.insert("mtu".to_owned(), json!(number::<u32>(name, text)?));
            }
            "vlan" => drop(self.keys.insert("vlan".to_owned(), json!(number::<u16>(name, text)?))),
            "metric" => self.metric = number(name, text)?,
            "no_default_route" => self.has_default_route = !truth(name, text)?,
            "isolate" => self.isolate(text)?,
            "mode" if text == "managed" => {}
            "mode" => {
                return Err(not_served(name, "the bridge is shunt's own; leave it out, or write managed"));
            }
            "vrf" => {
                return Err(not_served(
                    name,
                    "put the bridge into the VRF after the network's first container",
                ));
            }
            "outbound_addr4" | "outbound_addr6" => {
                return Err(not_served(
                    name,
                    "containers leave with the address of the interface that they leave by",
                ));
            }
            _ => self.own(name, text)?,
        }
        Ok(())
    }

    /// Other networks' isolation is not known here, so a network is apart from all others or from none.
    fn isolate(&mut self, text: &str) -> Result<(), NetavarkError> {
        match text {
            "false" => {
                self.keys.remove(POLICY);
                Ok(())
            }
            "strict" => {
                self.keys.insert(POLICY.to_owned(), json!("same-bridge"));
                Ok(())
            }
            "true" => {
                Err(not_served("isolate=true", "it means other isolated networks; strict means all others"))
            }
            _ => Err(invalid("isolate", format!("`{text}` is none of false, strict"))),
        }
    }

    fn own(&mut self, name: &str, text: &str) -> Result<(), NetavarkError> {
        let key = name.strip_prefix(OWN).filter(|key| KEYS.contains(key)).ok_or_else(|| {
            let known = format!(
                "mtu, vlan, metric, no_default_route, isolate, mode, and {OWN}… of {}",
                KEYS.join(", ")
            );
            NetavarkError::UnknownOption(name.to_owned(), known)
        })?;
        // A text that is no JSON is a text.
        let value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        self.keys.insert(key.to_owned(), value);
        Ok(())
    }
}

/// Refuses what was asked of a single container: netavark's bridge has one such option, the name of the host's end.
pub(super) fn refuse_of_container(options: Option<&BTreeMap<String, String>>) -> Result<(), NetavarkError> {
    match options.into_iter().flatten().next() {
        Some((name, _)) => {
            Err(not_served(name, "options are the network's; leave it out of --network NAME:…"))
        }
        None => Ok(()),
    }
}

fn not_served(key: &str, cure: &'static str) -> NetavarkError {
    NetavarkError::NotServed { key: key.to_owned(), cure }
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, NetavarkError> {
    text.parse().map_err(|_| invalid(name, format!("`{text}` is no number that it can have")))
}

fn truth(name: &str, text: &str) -> Result<bool, NetavarkError> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(invalid(name, format!("`{text}` is neither true nor false"))),
    }
}
