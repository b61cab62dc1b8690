//! `[cluster.vxlan]` in the configuration file.

use serde::{Deserialize, Deserializer, Serialize, de};

/// The longest name of an interface, in bytes (`IFNAMSIZ` without the zero behind it).
const LONGEST_NAME: usize = 15;

/// A VNI has 24 bits (RFC 7348, section 5).
const LARGEST_ID: u32 = (1 << 24) - 1;

/// The VXLAN device to nodes that are not on the link. All nodes of a cluster have the same identifier and port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct VxlanOptions {
    /// The device's name.
    #[cfg_attr(test, schemars(length(min = 1, max = LONGEST_NAME)))]
    #[serde(deserialize_with = "name")]
    pub device: String,
    /// The network identifier (VNI), that of no other network on the port: flannel's is 1. The same on all nodes.
    #[cfg_attr(test, schemars(range(min = 1, max = LARGEST_ID)))]
    #[serde(deserialize_with = "id")]
    pub id: u32,
    /// The UDP port, the same on all nodes. The default is that of Linux, flannel and Cilium, which clusters' packet filters let through; IANA's, 4789, is
    /// often the underlay's own (Docker Swarm, NSX), and some clouds and switches treat its packets apart.
    #[cfg_attr(test, schemars(range(min = 1)))]
    #[serde(deserialize_with = "port")]
    pub port: u16,
}

impl Default for VxlanOptions {
    fn default() -> Self {
        Self { device: "shunt-vxlan".to_owned(), id: 83, port: 8472 }
    }
}

/// What the kernel takes for a name (`dev_valid_name`, net/core/dev.c), without `%`, which it replaces by a number.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let has_odd =
        name.contains(|c: char| c == '/' || c == ':' || c == '%' || c.is_whitespace() || c.is_control());
    if name.is_empty() || name.len() > LONGEST_NAME || has_odd || name == "." || name == ".." {
        return Err(de::Error::custom(format!(
            "device = {name:?} is no interface's name: one has 1 to {LONGEST_NAME} bytes, and no `/`, `:`, `%` or space"
        )));
    }
    Ok(name)
}

fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let id = i64::deserialize(deserializer)?;
    let usable = u32::try_from(id).ok().filter(|id| (1..=LARGEST_ID).contains(id));
    usable.ok_or_else(|| de::Error::custom(format!("id = {id} is no VNI: those are 1 to {LARGEST_ID}")))
}

fn port<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    let port = i64::deserialize(deserializer)?;
    let usable = u16::try_from(port).ok().filter(|port| *port != 0);
    usable.ok_or_else(|| {
        de::Error::custom(format!("port = {port} is no UDP port: those are 1 to {}", u16::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_read_and_what_cannot_be_meant_is_named() {
        let read = |text: &str| toml::from_str::<VxlanOptions>(text);
        let options = read("device = 'tunnel'\nid = 16777215\nport = 65535").unwrap();
        assert_eq!((options.device.as_str(), options.id, options.port), ("tunnel", LARGEST_ID, u16::MAX));
        assert_eq!(read("").unwrap(), VxlanOptions::default());
        for (text, fault) in [
            ("id = 0", "no VNI"),
            ("id = 16777216", "no VNI"),
            ("id = -1", "no VNI"),
            ("port = 0", "no UDP port"),
            ("port = 65536", "no UDP port"),
            ("device = ''", "no interface's name"),
            ("device = 'sixteen-bytes-is'", "no interface's name"),
            ("device = 'a/b'", "no interface's name"),
            ("device = 'vx%d'", "no interface's name"),
            ("vni = 1", "vni"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(fault), "{text}: {error}");
        }
    }
}
