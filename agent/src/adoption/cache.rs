//! What runtimes remember of each ADD: libcni's cache, one file an attachment.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::Deserialize;
use shunt_agent_api::AttachmentKey;
use shunt_regular_file::read_own;

/// The directories below the cache's own: libcni's, and its older one.
const DIRECTORIES: [&str; 2] = ["results", "cache/results"];

/// No result comes near.
const LONGEST: u64 = 16 << 20;

/// An attachment as its runtime remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remembered {
    pub(super) key: AttachmentKey,
    pub(super) netns: String,
    pub(super) mac: String,
    pub(super) ips: Vec<IpAddr>,
    /// The interfaces that are not in the container.
    pub(super) on_node: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    container_id: String,
    if_name: String,
    network_name: String,
    result: AddResult,
}

#[derive(Deserialize)]
struct AddResult {
    #[serde(default)]
    interfaces: Vec<Interface>,
    #[serde(default)]
    ips: Vec<Ip>,
}

#[derive(Deserialize)]
struct Interface {
    name: String,
    #[serde(default)]
    mac: String,
    #[serde(default)]
    sandbox: String,
}

#[derive(Deserialize)]
struct Ip {
    #[serde(default)]
    interface: Option<usize>,
    address: String,
}

/// Reads every file that is one. Results without interfaces (CNI before 0.3) say too little.
///
/// # Errors
/// A directory cannot be read. There may be none.
pub(super) fn read(directory: &Path) -> io::Result<Vec<Remembered>> {
    let mut remembered = Vec::new();
    for path in DIRECTORIES.map(|name| directory.join(name)) {
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        let files = entries.flatten().map(|entry| entry.path());
        let texts = files.filter_map(|file: PathBuf| read_own(&file, LONGEST).ok());
        remembered.extend(texts.filter_map(|text| one(&text)));
    }
    Ok(remembered)
}

fn one(text: &[u8]) -> Option<Remembered> {
    let File { container_id, if_name, network_name, result } = serde_json::from_slice(text).ok()?;
    let is_own = |interface: &Interface| interface.name == if_name && !interface.sandbox.is_empty();
    let place = result.interfaces.iter().position(is_own)?;
    let own = &result.interfaces[place];
    let ips = result.ips.iter().filter(|ip| ip.interface == Some(place));
    let ips = ips.map(|ip| ip.address.parse::<IpNet>().map(|address| address.addr()));
    let on_node = result.interfaces.iter().filter(|interface| interface.sandbox.is_empty());
    Some(Remembered {
        netns: own.sandbox.clone(),
        mac: own.mac.to_ascii_lowercase(),
        ips: ips.collect::<Result<_, _>>().ok()?,
        on_node: on_node.map(|interface| interface.name.clone()).collect(),
        key: AttachmentKey { network: network_name, container: container_id, ifname: if_name },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libcni_writes_is_read_and_what_says_too_little_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let results = dir.path().join("results");
        fs::create_dir(&results).unwrap();
        let whole = r#"{"kind":"cniCacheV1","containerId":"c","config":"e30=","ifName":"eth0","networkName":"n","result":
            {"cniVersion":"1.0.0","interfaces":[{"name":"br0"},{"name":"veth1","mac":"0A:00:00:00:00:01"},
            {"name":"eth0","mac":"0A:00:00:00:00:02","sandbox":"/run/netns/c"}],
            "ips":[{"interface":2,"address":"10.0.0.2/24"},{"interface":0,"address":"10.0.0.1/24"}]}}"#;
        let old =
            r#"{"containerId":"d","ifName":"eth0","networkName":"n","result":{"ip4":{"ip":"10.0.0.3/24"}}}"#;
        for (name, text) in [("n-c-eth0", whole), ("n-d-eth0", old), ("other", "{")] {
            fs::write(results.join(name), text).unwrap();
        }
        let found = read(dir.path()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].key.to_string(), "n/c/eth0");
        assert_eq!((found[0].mac.as_str(), found[0].netns.as_str()), ("0a:00:00:00:00:02", "/run/netns/c"));
        assert_eq!(found[0].on_node, ["br0", "veth1"]);
        assert_eq!(found[0].ips, ["10.0.0.2".parse::<IpAddr>().unwrap()]);
        assert!(read(&dir.path().join("none")).unwrap().is_empty());
    }
}
