//! The results of attachments, in libcni's files: what CHECK and DEL are given as `prevResult`, whoever made the attachment.
//!
//! A file is `results/NETWORK-CONTAINER-IFNAME` below the cache's directory, of the kind `cniCacheV1`. No interface outlives a loss of power, so
//! nobody waits for the disk, as with libcni: a file that is broken then says nothing, and GC does not know of its attachment; a DEL by name removes it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shunt_regular_file::read_own;

use crate::failure::{Failure, codes};
use crate::files::{self, Outlives};
use crate::list::NetworkList;
use crate::proto::v1::{Attachment, ListedAttachment};
use crate::subject::Subject;

const KIND: &str = "cniCacheV1";

/// Bytes of a file that are read.
const LONGEST: u64 = 16 << 20;

/// Files that are looked at for one network, or for a page.
const MOST: usize = 100_000;

/// Entries of a page, and bytes of their results from which on no other one is added.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 1 << 20;

/// What is known of an attachment.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cached {
    kind: String,
    pub(crate) container_id: String,
    /// The configuration list in base64.
    config: String,
    pub(crate) if_name: String,
    pub(crate) network_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    netns: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cni_args: Vec<[String; 2]>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    capability_args: Map<String, Value>,
    #[serde(default)]
    pub(crate) result: Value,
}

impl Cached {
    pub(crate) fn of(list: &NetworkList, subject: &Subject, result: Value) -> Self {
        Self {
            kind: KIND.to_owned(),
            container_id: subject.container.clone(),
            config: STANDARD.encode(&list.raw),
            if_name: subject.ifname.clone(),
            network_name: list.name.clone(),
            netns: subject.netns.clone(),
            cni_args: subject.args.iter().map(|(key, value)| [key.clone(), value.clone()]).collect(),
            capability_args: subject.capability_args.clone(),
            result,
        }
    }

    /// Whether it was asked for in the same words.
    pub(crate) fn is_of(&self, list: &NetworkList, subject: &Subject) -> bool {
        let Self { config, netns, cni_args, capability_args, .. } = Self::of(list, subject, Value::Null);
        (&config, &netns, &cni_args, &capability_args)
            == (&self.config, &self.netns, &self.cni_args, &self.capability_args)
    }

    /// The list by which it was made.
    pub(crate) fn list(&self) -> Result<NetworkList, Failure> {
        let raw = STANDARD
            .decode(&self.config)
            .map_err(|error| Failure::new(codes::DECODING, format!("the cached configuration: {error}")))?;
        NetworkList::read(&raw)
    }

    /// Whom it was made for.
    pub(crate) fn subject(&self) -> Subject {
        let args: BTreeMap<_, _> = self.cni_args.iter().cloned().map(|[key, value]| (key, value)).collect();
        Subject {
            container: self.container_id.clone(),
            ifname: self.if_name.clone(),
            netns: self.netns.clone(),
            args,
            capability_args: self.capability_args.clone(),
        }
    }
}

impl From<Cached> for ListedAttachment {
    fn from(cached: Cached) -> Self {
        let attachment = Attachment { container_id: cached.container_id, ifname: cached.if_name };
        Self {
            network: cached.network_name,
            attachment: Some(attachment),
            netns: cached.netns,
            result: cached.result.to_string().into_bytes(),
        }
    }
}

/// The cache's directory.
#[derive(Debug)]
pub(crate) struct Cache(PathBuf);

impl Cache {
    pub(crate) fn in_directory(directory: &Path) -> Self {
        Self(directory.join("results"))
    }

    /// What is known; none of a file that cannot be read, which says nothing.
    pub(crate) fn read(&self, network: &str, subject: &Subject) -> Option<Cached> {
        let found = load(&self.file(network, &subject.container, &subject.ifname))?;
        // `a-b` and `c` have the file of `a` and `b-c`.
        let is_it = found.network_name == network
            && found.container_id == subject.container
            && found.if_name == subject.ifname;
        is_it.then_some(found)
    }

    /// # Errors
    /// Code 5.
    pub(crate) fn write(&self, cached: &Cached) -> Result<(), Failure> {
        let path = self.file(&cached.network_name, &cached.container_id, &cached.if_name);
        let bytes = serde_json::to_vec(cached).map_err(io::Error::from);
        bytes
            .and_then(|bytes| files::write(&path, &bytes, Outlives::Process))
            .map_err(|error| failed(&path, &error))
    }

    /// # Errors
    /// Code 5.
    pub(crate) fn remove(&self, network: &str, subject: &Subject) -> Result<(), Failure> {
        let path = self.file(network, &subject.container, &subject.ifname);
        files::remove(&path).map_err(|error| failed(&path, &error))
    }

    /// All that is known of a network.
    pub(crate) fn of_network(&self, network: &str) -> Vec<Cached> {
        let prefix = format!("{network}-");
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten().take(MOST);
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
        let found = named.filter_map(|entry| load(&entry.path()));
        found.filter(|cached| cached.network_name == network).collect()
    }

    /// All that is known of an interface of a container, in whichever network.
    pub(crate) fn of_interface(&self, container: &str, ifname: &str) -> Vec<Cached> {
        let suffix = format!("-{container}-{ifname}");
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten().take(MOST);
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(&suffix));
        let found = named.filter_map(|entry| load(&entry.path()));
        found.filter(|cached| cached.container_id == container && cached.if_name == ifname).collect()
    }

    /// The attachments behind the file `after`, by the names of their files; and the last one's, where there are more.
    pub(crate) fn page(
        &self,
        network: &str,
        size: usize,
        after: &str,
    ) -> (Vec<ListedAttachment>, Option<String>) {
        let size = if size == 0 { PAGE } else { size.min(PAGE) };
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten().take(MOST);
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| name.as_str() > after && name.starts_with(network));
        names.sort();
        let (mut found, mut bytes) = (Vec::new(), 0);
        let mut last = None;
        for name in names {
            if found.len() == size || bytes >= PAGE_BYTES {
                return (found, last);
            }
            let cached = load(&self.0.join(&name));
            if let Some(cached) = cached.filter(|cached| network.is_empty() || cached.network_name == network)
            {
                let listed = ListedAttachment::from(cached);
                bytes += listed.result.len();
                found.push(listed);
            }
            last = Some(name);
        }
        (found, None)
    }

    fn file(&self, network: &str, container: &str, ifname: &str) -> PathBuf {
        self.0.join(format!("{network}-{container}-{ifname}"))
    }
}

fn load(path: &Path) -> Option<Cached> {
    let found: Cached = serde_json::from_slice(&read_own(path, LONGEST).ok()?).ok()?;
    (found.kind == KIND).then_some(found)
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new(codes::IO, format!("the cached result {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(name: &str) -> NetworkList {
        let list = json!({ "cniVersion": "1.0.0", "name": name, "plugins": [{ "type": "shunt" }] });
        NetworkList::read(list.to_string().as_bytes()).unwrap()
    }

    fn subject(container: &str) -> Subject {
        let args = [("A".to_owned(), "b".to_owned())].into();
        Subject {
            container: container.to_owned(),
            ifname: "eth0".to_owned(),
            netns: "/run/netns/x".to_owned(),
            args,
            ..Subject::default()
        }
    }

    #[test]
    fn what_is_written_is_read_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(folder.path());
        let (list, subject) = (list("net"), subject("c"));
        let cached = Cached::of(&list, &subject, json!({ "ips": [] }));
        cache.write(&cached).unwrap();
        assert!(folder.path().join("results/net-c-eth0").is_file());
        let read = cache.read("net", &subject).unwrap();
        assert_eq!(read, cached);
        assert!(read.is_of(&list, &subject) && !read.is_of(&list, &Subject::default()));
        assert_eq!(read.list().unwrap().name, "net");
        assert_eq!(read.subject().cni_args(), "A=b");
        cache.remove("net", &subject).unwrap();
        cache.remove("net", &subject).unwrap();
        assert_eq!(cache.read("net", &subject), None);
    }

    #[test]
    fn a_network_whose_name_begins_like_another_s_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(folder.path());
        cache.write(&Cached::of(&list("a"), &subject("b-c"), Value::Null)).unwrap();
        cache.write(&Cached::of(&list("a"), &subject("d"), Value::Null)).unwrap();
        assert_eq!(cache.of_network("a").len(), 2);
        assert!(cache.of_network("a-b").is_empty());
        assert_eq!(cache.read("a-b", &subject("c")), None);
        cache.write(&Cached::of(&list("b"), &subject("d"), Value::Null)).unwrap();
        let mut networks: Vec<_> =
            cache.of_interface("d", "eth0").into_iter().map(|cached| cached.network_name).collect();
        networks.sort();
        assert_eq!(networks, ["a", "b"]);
        assert!(cache.of_interface("c", "eth0").is_empty());
    }

    #[test]
    fn attachments_are_listed_a_page_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_directory(folder.path());
        assert_eq!(cache.page("", 0, ""), (Vec::new(), None));
        for (network, container) in [("a", "c"), ("a", "d"), ("a-b", "c"), ("b", "c")] {
            cache.write(&Cached::of(&list(network), &subject(container), json!({ "ips": [] }))).unwrap();
        }
        fs::write(folder.path().join("results/a-broken-eth0"), "{").unwrap();
        let page = |network: &str, size: usize, after: &str| {
            let (found, next) = cache.page(network, size, after);
            let keys = found.into_iter().map(|listed| {
                assert_eq!(listed.result, br#"{"ips":[]}"#);
                format!("{} {}", listed.network, listed.attachment.unwrap().container_id)
            });
            (keys.collect::<Vec<_>>(), next)
        };
        assert_eq!(page("", 0, "").0, ["a-b c", "a c", "a d", "b c"]);
        assert_eq!(page("a", 0, "").0, ["a c", "a d"]);
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let (keys, next) = page("", 1, &after);
            assert!(keys.len() <= 1);
            found.extend(keys);
            match next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(found, ["a-b c", "a c", "a d", "b c"]);
    }

    /// As libcni 1.2 writes it.
    #[test]
    fn a_file_of_libcni_s_is_read_and_one_of_another_kind_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, path) = (Cache::in_directory(folder.path()), folder.path().join("results/net-c-eth0"));
        fs::create_dir_all(folder.path().join("results")).unwrap();
        let config = STANDARD.encode(&list("net").raw);
        let mut file = json!({
            "kind": "cniCacheV1", "containerId": "c", "config": config, "ifName": "eth0", "networkName": "net",
            "netns": "/run/netns/x", "cniArgs": [["IgnoreUnknown", "1"]], "capabilityArgs": { "mac": "x" },
            "result": { "cniVersion": "1.0.0", "dns": {} }
        });
        fs::write(&path, file.to_string()).unwrap();
        let read = cache.read("net", &subject("c")).unwrap();
        assert_eq!(read.subject().cni_args(), "IgnoreUnknown=1");
        assert_eq!(read.result["cniVersion"], "1.0.0");
        file["kind"] = "cniCacheV2".into();
        fs::write(&path, file.to_string()).unwrap();
        assert_eq!(cache.read("net", &subject("c")), None);
    }
}
