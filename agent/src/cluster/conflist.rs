//! The network configuration that runtimes read: written once it can be kept, replaced in one step, removed by `uninstall`. It says that
//! the agent has written it: what an operator has put in its place stays.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde_json::{Value, json};
use shunt_regular_file::read_own;

use super::mark::{LONGEST, MARK, is_marked};

/// The network's name.
pub(crate) const NETWORK: &str = "shunt";

/// The names that runtimes look for (libcni).
const EXTENSIONS: [&str; 3] = ["conf", "conflist", "json"];

/// The end of a file's name that is being written. No runtime reads such a file.
const UNFINISHED: &str = "shunt-unfinished";

/// The configuration of pods with addresses of `own`, which all pods in `pods` see, and an MTU in bytes; none leaves it to the kernel.
pub(crate) fn content(own: &[IpNet], pods: &[IpNet], mtu: Option<u32>, socket: &Path) -> Value {
    let ranges: Vec<_> = own.iter().map(|prefix| json!([{ "subnet": prefix.to_string() }])).collect();
    let mut plugin = json!({
        "type": "shunt",
        "bridge": "cni0",
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
    json!({ "cniVersion": "1.1.0", "name": NETWORK, MARK: true, "plugins": [plugin] })
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
    replace(path, format!("{content:#}\n").as_bytes(), 0o644).map(|()| true)
}

/// Replaces a file in one step.
///
/// # Errors
/// The file system's; the file is as it was.
pub(crate) fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let unfinished = path.with_added_extension(UNFINISHED);
    let written = (|| {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(mode).open(&unfinished)?;
        // Whatever the process's mask says.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    })();
    if written.is_err() {
        let _absent = fs::remove_file(&unfinished);
    }
    written
}

/// A configuration of somebody else's that runtimes read instead, as its name comes first.
pub(crate) fn earlier(path: &Path) -> Option<PathBuf> {
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
        let wanted = content(&own, &nets(&["10.244.0.0/16"]), Some(1450), Path::new("/run/other.sock"));
        assert!(write(&path, &wanted).unwrap());
        assert!(!write(&path, &wanted).unwrap(), "it says so already");
        let read: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(read["plugins"][0]["ipam"]["ranges"][1][0]["subnet"], "fd01::/64");
        assert_eq!(read["plugins"][0]["agentSocket"], "/run/other.sock");
        assert_eq!(read["plugins"][0]["mtu"], 1450);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
        let changed = content(&own, &nets(&["10.244.0.0/15"]), None, Path::new("/run/other.sock"));
        assert!(write(&path, &changed).unwrap() && is_managed(&path));
    }

    #[test]
    fn what_an_operator_has_written_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("10-shunt.conflist");
        for text in [r#"{"cniVersion": "1.1.0", "name": "shunt", "plugins": [{"type": "shunt"}]}"#, "{"] {
            fs::write(&path, text).unwrap();
            let refused =
                write(&path, &content(&nets(&["10.244.1.0/24"]), &[], None, Path::new("/run/s.sock")));
            assert!(refused.unwrap_err().to_string().contains("somebody else"));
            assert!(!is_managed(&path));
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_configuration_that_sorts_first_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("10-shunt.conflist");
        for name in ["10-shunt.conflist", "20-late.conflist", "05-note.txt", "99.conf"] {
            fs::write(dir.path().join(name), "{}").unwrap();
        }
        assert_eq!(earlier(&path), None);
        fs::write(dir.path().join("05-other.conf"), "{}").unwrap();
        assert_eq!(earlier(&path), Some(dir.path().join("05-other.conf")));
        assert_eq!(earlier(Path::new("/nonexistent/10-shunt.conflist")), None);
    }
}
