//! What an uninstallation has handed to other plugins, for whoever deletes the container later.
//!
//! A file for each attachment, beside the socket: like the rules that it tells of it does not outlive the node's boot. The agent writes
//! it before the rules are made; the DEL or GC of a later installation has the plugins remove the rules, and then the file.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AttachmentKey, fnv};

/// The rules that others have made for an attachment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HandedOver {
    /// Whose.
    pub key: AttachmentKey,
    /// Index and name of the host's end of the container's interface.
    pub host: (u32, String),
    /// The configuration by which `portmap` was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ports: Option<Value>,
    /// The configuration by which `bridge` was asked, with the container's addresses (`ipam.addresses`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masquerading: Option<Value>,
}

impl HandedOver {
    /// As many bytes has a file at most: the host ports of one attachment have few hundred thousand.
    pub const LONGEST: u64 = 16 << 20;

    /// The directory, for an agent that listens at `socket`.
    pub fn directory(socket: &Path) -> PathBuf {
        socket.with_added_extension("handed-over")
    }

    /// The file of an attachment.
    pub fn path(socket: &Path, key: &AttachmentKey) -> PathBuf {
        let text = format!("{}\0{}\0{}", key.network, key.container, key.ifname);
        Self::directory(socket).join(format!("{:032x}.json", fnv::of_128_bits(text.as_bytes())))
    }

    /// The container's addresses that are masqueraded, each with the length of its subnet's prefix.
    pub fn addresses(&self) -> Vec<&str> {
        let addresses = self.masquerading.as_ref().and_then(|config| config["ipam"]["addresses"].as_array());
        addresses.into_iter().flatten().filter_map(|one| one["address"].as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attachment_has_a_file_of_its_own_beside_the_socket() {
        let key = |network: &str, container: &str| AttachmentKey {
            network: network.into(),
            container: container.into(),
            ifname: "eth0".into(),
        };
        let socket = Path::new("/run/shunt/agent.sock");
        let path = |key: AttachmentKey| HandedOver::path(socket, &key);
        assert!(path(key("pods", "one")).starts_with("/run/shunt/agent.sock.handed-over"));
        assert_ne!(path(key("pods", "one")), path(key("pod", "sone")));
        let name = "52b844f01292447724c715a016b73e66.json";
        assert!(path(key("pods", "one")).ends_with(name), "the same in every release");
        let text = r#"{"key": {"network": "pods", "container": "one", "ifname": "eth0"}, "host": [7, "veth1"],
            "masquerading": {"ipam": {"addresses": [{"address": "10.0.0.2/24"}]}}}"#;
        let read: HandedOver = serde_json::from_str(text).unwrap();
        assert_eq!(read.addresses(), ["10.0.0.2/24"]);
        assert!(read.host_ports.is_none());
    }
}
