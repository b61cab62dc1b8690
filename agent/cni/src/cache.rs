//! The results of attachments, in libcni's files: what CHECK and DEL are given as `prevResult`, whoever made the attachment.
//!
//! A file is `results/NETWORK-CONTAINER-IFNAME` below the cache's directory, of the kind `cniCacheV1`. No interface outlives a loss of power, so
//! nobody waits for the disk, as with libcni: a file that is broken then says nothing, and GC does not know of its attachment; a DEL by name removes it.
//! Beside them, where libcni does not look, `begun` has the same of each ADD that is not finished.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shunt_regular_file::{LONGEST_NAME, Outlives, read_own, remove};

use crate::failure::{Failure, codes};
use crate::files;
use crate::list::NetworkList;
use crate::netns_id::{self, Now};
use crate::proto::v1::{Attachment, ListedAttachment};
use crate::subject::Subject;

const KIND: &str = "cniCacheV1";

/// Bytes of a file that are read.
const LONGEST: u64 = 16 << 20;

/// Files that are looked at for one network, or for a page.
const MOST: usize = 100_000;

/// Entries of a page, and bytes of their results from which on no other one is added.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 256 << 10;

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
    /// Which namespace was there, in our own words ([`netns_id::of`]). libcni passes over the key.
    #[serde(rename = "shuntNetnsCookie", default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(default)]
    pub(crate) result: Value,
}

impl Cached {
    pub(crate) fn of(
        list: &NetworkList,
        subject: &Subject,
        (namespace, result): (Option<String>, Value),
    ) -> Self {
        Self {
            kind: KIND.to_owned(),
            container_id: subject.container.clone(),
            config: STANDARD.encode(&list.raw),
            if_name: subject.ifname.clone(),
            network_name: list.name.clone(),
            netns: subject.netns.clone(),
            cni_args: subject.args.iter().map(|(key, value)| [key.clone(), value.clone()]).collect(),
            capability_args: subject.capability_args.clone(),
            namespace,
            result,
        }
    }

    /// The same with what has been made.
    pub(crate) fn with(self, result: Value) -> Self {
        Self { result, ..self }
    }

    /// Whether the namespace that it was made in is still the one at `netns`, which is `now` there.
    pub(crate) fn compare(&self, netns: &str, now: Option<&str>) -> Now {
        netns_id::compare(self.namespace.as_deref(), now.filter(|_| self.netns == netns))
    }

    /// The same without a namespace, for a DEL that must not enter the one at its path.
    pub(crate) fn without_netns(self) -> Self {
        Self { netns: String::new(), ..self }
    }

    /// Whether it is the one of this attachment: `a-b` and `c` have the file of `a` and `b-c`.
    fn is_about(&self, network: &str, subject: &Subject) -> bool {
        [&self.network_name, &self.container_id, &self.if_name]
            == [network, subject.container.as_str(), subject.ifname.as_str()]
    }

    /// Whether it was asked for in the same words.
    pub(crate) fn is_of(&self, list: &NetworkList, subject: &Subject) -> bool {
        let Self { config, netns, cni_args, capability_args, .. } =
            Self::of(list, subject, (None, Value::Null));
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

    /// The directory of what is begun.
    pub(crate) fn of_begun(directory: &Path) -> Self {
        Self(directory.join("begun"))
    }

    /// Whether there can be a file of this attachment.
    ///
    /// # Errors
    /// Code 4: its name would be too long; 106: it is another attachment's.
    pub(crate) fn admits(&self, network: &str, subject: &Subject) -> Result<(), Failure> {
        let path = self.file(network, &subject.container, &subject.ifname);
        let length = path.file_name().unwrap_or_default().len();
        if length > LONGEST_NAME {
            let why = format!(
                "network, container id and interface have {length} bytes as a file's name, more than {LONGEST_NAME}"
            );
            return Err(Failure::new(codes::ENVIRONMENT, why));
        }
        match load(&path) {
            Some(found) if !found.is_about(network, subject) => {
                let Cached { network_name, container_id, if_name, .. } = found;
                let why = format!(
                    "{if_name} of {container_id} in {network_name}, made or begun, has the file {} in the cache, which would be this one's: delete that, or take another container id",
                    path.display()
                );
                Err(Failure::new(codes::EXISTS, why))
            }
            _ => Ok(()),
        }
    }

    /// What is known; none of a file that cannot be read, which says nothing.
    pub(crate) fn read(&self, network: &str, subject: &Subject) -> Option<Cached> {
        let found = load(&self.file(network, &subject.container, &subject.ifname))?;
        found.is_about(network, subject).then_some(found)
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

    /// Removes the file of this attachment, and no other one's.
    ///
    /// # Errors
    /// Code 5.
    pub(crate) fn remove(&self, network: &str, subject: &Subject) -> Result<(), Failure> {
        let path = self.file(network, &subject.container, &subject.ifname);
        // Where there is none another one's may come at any time; a broken one is nobody's.
        if !path.exists() || load(&path).is_some_and(|found| !found.is_about(network, subject)) {
            return Ok(());
        }
        remove(&path).map_err(|error| failed(&path, &error))
    }

    /// All that is known of a network.
    pub(crate) fn of_network(&self, network: &str) -> Vec<Cached> {
        let prefix = format!("{network}-");
        let named = self.names().filter(|name| name.starts_with(&prefix));
        let found = named.filter_map(|name| load(&self.0.join(name)));
        found.filter(|cached| cached.network_name == network).collect()
    }

    /// All that is known of an interface of a container, in whichever network.
    pub(crate) fn of_interface(&self, container: &str, ifname: &str) -> Vec<Cached> {
        let suffix = format!("-{container}-{ifname}");
        let named = self.names().filter(|name| name.ends_with(&suffix));
        let found = named.filter_map(|name| load(&self.0.join(name)));
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
        let names = self.names().filter(|name| name.as_str() > after && name.starts_with(network));
        let mut names: Vec<_> = names.collect();
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

    /// The names of files that are whole: no name of a network begins with a dot.
    fn names(&self) -> impl Iterator<Item = String> + use<> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten().take(MOST);
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| !name.starts_with('.'))
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
#[path = "cache_tests.rs"]
mod tests;
