//! The network configuration that runtimes read: written once it can be kept, replaced in one step, removed by `uninstall`. It says that
//! the agent has written it: what an operator has put in its place stays.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde_json::{Value, json};
use shunt_netlink::prefix;
use shunt_regular_file::{Outlives, read_own, replace};

pub(crate) use super::mark::NETWORK;
use super::mark::{LONGEST, MARK, is_marked, managed};

/// The bridge of its pods.
pub(super) const BRIDGE: &str = "cni0";

/// Names the prefixes that this node's pods had before. Only the agent reads it.
const EARLIER: &str = "shunt.dev/earlierPodCIDRs";

/// As many of them are remembered.
const MOST_EARLIER: usize = 8;

/// The names that runtimes look for (libcni).
const EXTENSIONS: [&str; 3] = ["conf", "conflist", "json"];

/// What a configuration says beside the prefixes that others have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<'a> {
    /// The prefixes of this node's pods.
    pub(crate) own: &'a [IpNet],
    /// Those that they had before, the newest last.
    pub(crate) earlier: &'a [IpNet],
    /// The prefixes of all pods, who see each other.
    pub(crate) pods: &'a [IpNet],
    /// The pods' MTU in bytes; none leaves it to the kernel.
    pub(crate) mtu: Option<u32>,
}

/// The configuration.
pub(crate) fn content(said: &Said<'_>, socket: &Path) -> Value {
    let Said { own, earlier, pods, mtu } = *said;
    let ranges: Vec<_> = own.iter().map(|prefix| json!([{ "subnet": prefix.to_string() }])).collect();
    let mut plugin = json!({
        "type": "shunt",
        "bridge": BRIDGE,
        "isDefaultGateway": true,
        "ipMasq": true,
        "nonMasqueradeCIDRs": pods.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "hairpinMode": true,
        "capabilities": { "portMappings": true, "bandwidth": true },
        "ipam": { "type": "shunt-ipam", "ranges": ranges },
    });
    if let Some(mtu) = mtu {
        plugin["mtu"] = json!(mtu);
    }
    if socket != Path::new(shunt_agent_api::DEFAULT_SOCKET) {
        plugin["agentSocket"] = json!(socket);
    }
    let mut content = json!({ "cniVersion": "1.1.0", "name": NETWORK, MARK: true, "plugins": [plugin] });
    if !earlier.is_empty() {
        content[EARLIER] = json!(earlier.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    content
}

/// The prefixes that this node's pods had before `own`, the newest last, as the configuration that is there remembers them.
pub(crate) fn earlier_prefixes(path: &Path, own: &[IpNet]) -> Vec<IpNet> {
    let Some(known) = managed(path) else { return Vec::new() };
    let remembered = known[EARLIER].as_array().into_iter().flatten();
    let sets = known["plugins"][0]["ipam"]["ranges"].as_array().into_iter().flatten();
    let ranges = sets.flat_map(|set| set.as_array().into_iter().flatten()).map(|range| &range["subnet"]);
    let texts = remembered.chain(ranges).filter_map(Value::as_str);
    let mut earlier: Vec<IpNet> = Vec::new();
    for prefix in texts.filter_map(|text| prefix::parse(text).ok()).filter(|prefix| !own.contains(prefix)) {
        earlier.retain(|other| *other != prefix);
        earlier.push(prefix);
    }
    earlier.split_off(earlier.len().saturating_sub(MOST_EARLIER))
}

/// Writes it where it says something else, or is missing; whether it did.
///
/// # Errors
/// The file system's, or the file is somebody else's; it is as it was.
pub(crate) fn write(path: &Path, content: &Value) -> io::Result<bool> {
    match read_own(path, LONGEST) {
        Ok(text) => match serde_json::from_slice::<Value>(&text) {
            Ok(known) if known == *content => return Ok(false),
            Ok(known) if is_marked(&known) => {}
            _ => {
                return Err(io::Error::other(
                    "somebody else has written it: move it away, or name another in conflist",
                ));
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // No runtime reads the unfinished one: its name ends in none of theirs.
    replace(path, format!("{content:#}\n").as_bytes(), 0o644, Outlives::Power).map(|()| true)
}

/// A configuration of somebody else's that runtimes read instead, as its name comes first.
pub(crate) fn read_first(path: &Path) -> Option<PathBuf> {
    let own = path.file_name()?;
    let is_read = |other: &PathBuf| {
        let extension = other.extension().and_then(OsStr::to_str);
        extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
            && other.file_name().is_some_and(|name| name < own)
            && other.is_file()
    };
    let entries = fs::read_dir(path.parent()?).ok()?;
    entries.flatten().map(|entry| entry.path()).filter(is_read).min()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::mark::is_managed;
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn it_is_written_once_and_names_both_families_ranges() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("10-shunt.conflist");
        let own = nets(&["10.244.1.0/24", "fd01::/64"]);
        let pods = nets(&["10.244.0.0/16"]);
        let said = Said { own: &own, earlier: &[], pods: &pods, mtu: Some(1450) };
        let wanted = content(&said, Path::new("/run/other.sock"));
        assert!(write(&path, &wanted).unwrap());
        assert!(!write(&path, &wanted).unwrap(), "it says so already");
        let read: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(read["plugins"][0]["ipam"]["ranges"][1][0]["subnet"], "fd01::/64");
        assert_eq!(read["plugins"][0]["agentSocket"], "/run/other.sock");
        assert_eq!(read["plugins"][0]["mtu"], 1450);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
        let changed = content(&Said { mtu: None, ..said }, Path::new("/run/other.sock"));
        assert!(write(&path, &changed).unwrap() && is_managed(&path));
    }

    #[test]
    fn what_an_operator_has_written_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("10-shunt.conflist");
        for text in [r#"{"cniVersion": "1.1.0", "name": "shunt", "plugins": [{"type": "shunt"}]}"#, "{"] {
            fs::write(&path, text).unwrap();
            let own = nets(&["10.244.1.0/24"]);
            let said = Said { own: &own, earlier: &[], pods: &[], mtu: None };
            let refused = write(&path, &content(&said, Path::new("/run/s.sock")));
            assert_eq!(earlier_prefixes(&path, &[]), []);
            assert!(refused.unwrap_err().to_string().contains("somebody else"));
            assert!(!is_managed(&path));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn the_prefixes_that_pods_had_before_are_remembered_up_to_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("10-shunt.conflist");
        let all: Vec<IpNet> = (0..12).map(|net| format!("10.244.{net}.0/24").parse().unwrap()).collect();
        for own in &all {
            let (own, earlier) = ([*own], earlier_prefixes(&path, &[*own]));
            let said = Said { own: &own, earlier: &earlier, pods: &own, mtu: None };
            assert!(write(&path, &content(&said, Path::new("/run/s.sock"))).unwrap());
        }
        assert_eq!(earlier_prefixes(&path, &all[11..]), all[3..11]);
        // One that comes back is the node's again.
        assert_eq!(earlier_prefixes(&path, &all[10..11]), [&all[3..10], &all[11..]].concat());
    }

    #[test]
    fn a_configuration_that_sorts_first_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("10-shunt.conflist");
        for name in ["10-shunt.conflist", "20-late.conflist", "05-note.txt", "99.conf"] {
            fs::write(dir.path().join(name), "{}").unwrap();
        }
        assert_eq!(read_first(&path), None);
        fs::write(dir.path().join("05-other.conf"), "{}").unwrap();
        assert_eq!(read_first(&path), Some(dir.path().join("05-other.conf")));
        assert_eq!(read_first(Path::new("/nonexistent/10-shunt.conflist")), None);
    }
}
