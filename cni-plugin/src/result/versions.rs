//! Results of every version of the specification, 0.1.0 to 1.1.0.
//!
//! 0.1.0 and 0.2.0 know one address per family, each with its routes; 0.3.0 to 0.4.0 say each address's family; 1.0.0
//! leaves that out; 1.1.0 adds the interfaces' MTU, socket and PCI address and the routes' metrics.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::add_result::AddResult;
use super::dns::Dns;
use super::interface::Ip;
use super::lenient;
use super::route::Route;
use crate::call::Version;
use crate::json::pretty;

/// A result cannot be read, or not be said in the version asked for.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// Not a result of its version.
    #[error("not a result of version {version}: {source}")]
    Malformed {
        /// The version that it claims, or that the configuration has.
        version: Version,
        /// What is wrong, with the path to it.
        source: serde_path_to_error::Error<serde_json::Error>,
    },
    /// It claims a version that does not exist.
    #[error("the result is of version `{0}`, which is not known")]
    UnknownVersion(String),
    /// 0.1.0 and 0.2.0 cannot say it.
    #[error("a result of version {0} needs at least one address")]
    NoAddress(Version),
    /// It could not be written as JSON.
    #[error("the result cannot be written: {0}")]
    Unwritable(#[from] serde_json::Error),
}

/// One family's part of a result before 0.3.0.
#[derive(Debug, Serialize, Deserialize)]
struct FamilyConfig {
    #[serde(deserialize_with = "shunt_netlink::prefix::deserialize")]
    ip: IpNet,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::address")]
    gateway: Option<std::net::IpAddr>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    routes: Vec<Route>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FamilyResult {
    ip4: Option<FamilyConfig>,
    ip6: Option<FamilyConfig>,
    dns: Dns,
}

impl AddResult {
    /// Whether [`to_json`](Self::to_json) will find words for it: to be asked before there is anything to undo.
    ///
    /// # Errors
    /// [`ResultError::NoAddress`].
    pub fn can_be_expressed_in(&self, version: Version) -> Result<(), ResultError> {
        let has_words = version >= Version::V0_3_0 || !self.ips.is_empty();
        has_words.then_some(()).ok_or(ResultError::NoAddress(version))
    }

    /// Says the result in `version`.
    ///
    /// # Errors
    /// [`ResultError::NoAddress`] before 0.3.0, [`ResultError::Unwritable`].
    pub fn to_json(&self, version: Version) -> Result<Value, ResultError> {
        let mut object = Map::new();
        object.insert("cniVersion".to_owned(), json!(version.as_str()));
        if version < Version::V0_3_0 {
            self.write_families(version, &mut object)?;
        } else {
            let written = serde_json::to_value(self.without_newer_fields(version))?;
            if let Value::Object(fields) = written {
                object.extend(fields);
            }
            if version < Version::V1_0_0 {
                name_families(&self.ips, &mut object);
            }
        }
        object.insert("dns".to_owned(), serde_json::to_value(&self.dns)?);
        Ok(Value::Object(object))
    }

    /// The same as it is printed.
    ///
    /// # Errors
    /// Those of [`to_json`](Self::to_json).
    pub(crate) fn print(&self, version: Version) -> Result<String, ResultError> {
        Ok(pretty(&self.to_json(version)?))
    }

    /// Reads a result, whose keys are already in the specification's case; `assumed` is its version if it names none.
    ///
    /// # Errors
    /// [`ResultError::Malformed`], [`ResultError::UnknownVersion`].
    pub fn from_json(value: &Value, assumed: Version) -> Result<Self, ResultError> {
        let version = match value.get("cniVersion").and_then(Value::as_str) {
            None | Some("") => assumed,
            Some(text) => text.parse().map_err(|_| ResultError::UnknownVersion(text.to_owned()))?,
        };
        let malformed = |source| ResultError::Malformed { version, source };
        if version >= Version::V0_3_0 {
            return serde_path_to_error::deserialize(value).map_err(malformed);
        }
        let old: FamilyResult = serde_path_to_error::deserialize(value).map_err(malformed)?;
        let mut result = Self { dns: old.dns, ..Self::default() };
        for family in [old.ip4, old.ip6].into_iter().flatten() {
            result.ips.push(Ip { interface: None, address: family.ip, gateway: family.gateway });
            result.routes.extend(family.routes);
        }
        Ok(result)
    }

    fn without_newer_fields(&self, version: Version) -> Self {
        let mut result = self.clone();
        if version < Version::V1_1_0 {
            for interface in &mut result.interfaces {
                interface.mtu = None;
                interface.socket_path.clear();
                interface.pci_id.clear();
            }
            for route in &mut result.routes {
                *route = Route::via(route.dst, route.gw);
            }
        }
        result
    }

    fn write_families(&self, version: Version, object: &mut Map<String, Value>) -> Result<(), ResultError> {
        self.can_be_expressed_in(version)?;
        for (key, v4) in [("ip4", true), ("ip6", false)] {
            let Some(ip) = self.ips.iter().find(|ip| ip.address.addr().is_ipv4() == v4) else {
                continue;
            };
            let routes = self.routes.iter().filter(|route| route.dst.addr().is_ipv4() == v4);
            let routes = routes.map(|route| Route::via(route.dst, route.gw)).collect();
            let family = FamilyConfig { ip: ip.address, gateway: ip.gateway, routes };
            object.insert(key.to_owned(), serde_json::to_value(family)?);
        }
        Ok(())
    }
}

fn name_families(ips: &[Ip], object: &mut Map<String, Value>) {
    let Some(Value::Array(written)) = object.get_mut("ips") else {
        return;
    };
    for (ip, written) in ips.iter().zip(written) {
        written["version"] = json!(if ip.address.addr().is_ipv4() { "4" } else { "6" });
    }
}
