//! `[cluster]` in the configuration file.

use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, de};
use shunt_netlink::prefix;

use super::vxlan::VxlanOptions;

/// How packets reach the pods of other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Routes {
    /// As `host` where that leads there, else as `vxlan`.
    #[default]
    Auto,
    /// By routes to nodes that are on a link of this one.
    Host,
    /// Through a VXLAN device of the agent's, wherever the nodes are.
    Vxlan,
    /// By somebody else's routes.
    Off,
}

/// How the agent is the cluster's network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ClusterOptions {
    /// Whether the agent is the cluster's network. The API server and the node's name are those of `[kubernetes]`, which need not be there.
    pub enabled: bool,
    /// The prefixes that this node's pods get addresses of, at most one of each family.
    #[cfg_attr(test, schemars(with = "Vec<String>", extend("form" = "list of prefixes", "otherwise" = "the node's, as the API server has them")))]
    #[serde(deserialize_with = "prefixes")]
    pub pod_cidrs: Vec<IpNet>,
    /// How packets reach the pods of other nodes.
    pub routes: Routes,
    /// The VXLAN device.
    #[cfg_attr(test, schemars(extend("see" = "kubernetes.md#vxlan")))]
    pub vxlan: VxlanOptions,
    /// The network configuration that is written.
    #[cfg_attr(test, schemars(extend("form" = "path")))]
    pub conflist: PathBuf,
    /// The runtime's plugin directory, which must have the plugin before the configuration is written.
    #[cfg_attr(test, schemars(extend("form" = "path")))]
    pub cni_bin_dir: PathBuf,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            enabled: false,
            pod_cidrs: Vec::new(),
            routes: Routes::default(),
            vxlan: VxlanOptions::default(),
            conflist: PathBuf::from("/etc/cni/net.d/10-shunt.conflist"),
            cni_bin_dir: PathBuf::from("/opt/cni/bin"),
        }
    }
}

impl ClusterOptions {
    /// Those of an agent that has written this network configuration.
    pub fn written_to(conflist: PathBuf) -> Self {
        Self { enabled: true, conflist, ..Self::default() }
    }
}

fn prefixes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let read = texts.iter().map(|text| prefix::parse(text).map(|prefix| prefix.trunc()));
    let prefixes: Vec<IpNet> = read.collect::<Result<_, _>>().map_err(de::Error::custom)?;
    if let Some(mapped) = prefixes.iter().find(|prefix| prefix::is_mapped(prefix)) {
        return Err(de::Error::custom(format!("{mapped} holds mapped IPv4 addresses: write them as IPv4")));
    }
    let of_v4 = prefixes.iter().filter(|prefix| prefix.addr().is_ipv4()).count();
    if of_v4 > 1 || prefixes.len() - of_v4 > 1 {
        return Err(de::Error::custom("pod_cidrs has more than one prefix of a family"));
    }
    Ok(prefixes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ClusterOptions, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn options_are_read_and_what_cannot_be_meant_is_named() {
        let options =
            read("enabled = true\npod_cidrs = ['10.244.1.7/24', 'fd01::/64']\nroutes = 'host'").unwrap();
        assert_eq!(options.pod_cidrs, ["10.244.1.0/24".parse().unwrap(), "fd01::/64".parse().unwrap()]);
        assert!(!ClusterOptions::default().enabled);
        for (text, fault) in [
            ("pod_cidrs = ['10.244.1.0']", "10.244.1.0"),
            ("pod_cidrs = ['10.1.0.0/24', '10.2.0.0/24']", "more than one"),
            ("routes = 'tunnel'", "tunnel"),
            ("[vxlan]\nid = 16777216", "16777216"),
            ("pod_cidrs = ['::ffff:10.1.0.0/112']", "mapped"),
            ("pod_cidr = '10.1.0.0/24'", "pod_cidr"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(fault), "{text}: {error}");
        }
    }
}
