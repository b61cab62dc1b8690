//! Hashes the names of pods, namespaces, containers and nodes: within one report a name is always the same word, and no other report has it.
//!
//! Names are known from what the agent says, from the state files, and from the fields of the log that hold them. A name is
//! replaced wherever it stands between characters that are neither letters nor digits.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use serde_json::Value;

use super::part::{Content, Had, Outcome};
use super::state_files;

/// Fields whose value is a name, in reports, state files and log lines.
const FIELDS: [&str; 9] =
    ["container", "namespace", "pod", "pod_uid", "uid", "node", "netns", "claim", "claims"];

/// Fields of reports whose value is a sentence.
const SENTENCES: [&str; 6] = ["reasons", "warnings", "obstacles", "sold_out", "findings", "kernels_way"];

/// The field whose value is a pod's namespace.
const NAMESPACE: &str = "namespace";

/// A field whose value is `NETWORK/CONTAINER/IFNAME`.
const KEY: &str = "key";

/// A word of so many hexadecimal digits is a container's id.
const ID: usize = 32;

/// Every name that is to be hashed.
pub(super) struct Names {
    /// By the word that each begins with, longest first.
    by_start: HashMap<String, Vec<String>>,
    /// Made of a random key.
    hasher: RandomState,
}

impl Names {
    /// The names that the parts and the state directory have, and the node's.
    pub(super) fn of(node: &str, state_dir: &Path, outcomes: &[(&'static str, Outcome)]) -> Self {
        let mut found = Found::default();
        let host = nix::unistd::gethostname().unwrap_or_default().to_string_lossy().into_owned();
        for name in [node, &host, &host.to_lowercase()] {
            add(&mut found, name);
            // A node's short name stands alone as well.
            add(&mut found, name.split('.').next().unwrap_or_default());
        }
        for (_, outcome) in outcomes {
            match &outcome.0 {
                Ok(Had { content: Content::Json(value), .. }) => harvest(&mut found, "", value),
                Ok(Had { content: Content::Text(text), .. }) => harvest_lines(&mut found, text),
                Err(_) => {}
            }
        }
        for file in state_files::contents(state_dir) {
            harvest(&mut found, "", &file.value);
            file.keys.iter().for_each(|name| add(&mut found, name));
            // Parts of such a file's name are encoded, or cut off.
            found.names.extend(file.stem.filter(|stem| stem.contains('%')));
        }
        Self::new(found.all())
    }

    fn new(found: BTreeSet<String>) -> Self {
        let mut by_start: HashMap<String, Vec<String>> = HashMap::new();
        for name in found {
            by_start.entry(start(&name).to_owned()).or_default().push(name);
        }
        by_start.values_mut().for_each(|names| names.sort_by_key(|name| std::cmp::Reverse(name.len())));
        Self { by_start, hasher: RandomState::new() }
    }

    /// The text with every name hashed.
    pub(super) fn hide(&self, text: &str) -> String {
        let mut hidden = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let gap = rest.find(char::is_alphanumeric).unwrap_or(rest.len());
            hidden.push_str(&rest[..gap]);
            rest = &rest[gap..];
            let word = start(rest);
            let length = self.name_at(word, rest);
            match length {
                Some(length) => {
                    let _written = write!(hidden, "name-{:016x}", self.hasher.hash_one(&rest[..length]));
                    rest = &rest[length..];
                }
                None => {
                    hidden.push_str(word);
                    rest = &rest[word.len()..];
                }
            }
        }
        hidden
    }

    /// How long the name is that the text begins with.
    fn name_at(&self, word: &str, text: &str) -> Option<usize> {
        let ends = |length: usize| !text[length..].starts_with(char::is_alphanumeric);
        let known = self.by_start.get(word).into_iter().flatten();
        let known = known.map(String::as_str).find(|name| text.starts_with(name) && ends(name.len()));
        let is_id = word.len() >= ID && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        known.map(str::len).or(is_id.then_some(word.len()))
    }
}

/// The letters and digits that a text begins with.
fn start(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(text.len());
    &text[..end]
}

/// What has been found so far.
#[derive(Default)]
struct Found {
    names: BTreeSet<String>,
    /// Those of them that are namespaces.
    namespaces: BTreeSet<String>,
    /// Words of sentences that may be `NAMESPACE/NAME`.
    pairs: BTreeSet<(String, String)>,
}

impl Found {
    /// Every name, and what stands behind a namespace in a sentence.
    fn all(self) -> BTreeSet<String> {
        let Self { mut names, namespaces, pairs } = self;
        names.extend(pairs.into_iter().filter(|(first, _)| namespaces.contains(first)).map(|(_, name)| name));
        names
    }
}

/// Adds a name, and of a path its last part; what has neither letter nor digit is none.
fn add(found: &mut Found, name: &str) {
    let name = name.trim_matches(|letter: char| !letter.is_alphanumeric());
    let last = name.rsplit('/').next().unwrap_or_default();
    if name.contains('/') && !last.is_empty() && last != "net" {
        found.names.insert(last.to_owned());
    }
    if !name.is_empty() && !name.contains('/') {
        found.names.insert(name.to_owned());
    }
}

/// The names in a value, which is that of a field.
fn harvest(found: &mut Found, field: &str, value: &Value) {
    match value {
        Value::String(text) if FIELDS.contains(&field) => {
            add(found, text);
            found.namespaces.extend((field == NAMESPACE).then(|| text.clone()));
        }
        Value::String(text) if field == KEY => add_key(found, text),
        Value::String(text) if SENTENCES.contains(&field) => harvest_lines(found, text),
        Value::Array(all) => all.iter().for_each(|value| harvest(found, field, value)),
        Value::Object(fields) => {
            for (name, value) in fields {
                // A pod's or a claim's `name` is one; a program's is none.
                let is_name = name == "name" && FIELDS.contains(&field);
                harvest(found, if is_name { "pod" } else { name }, value);
            }
        }
        _ => {}
    }
}

fn add_key(found: &mut Found, key: &str) {
    let parts: Vec<_> = key.trim_matches(['"', '\\']).split('/').collect();
    if let [_, container, _] = parts[..] {
        add(found, container);
    }
}

/// An attachment in a sentence, or what may be a pod; a path is neither.
fn add_word(found: &mut Found, word: &str) {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '/');
    if word.starts_with('/') {
        return;
    }
    let word = word.trim_end_matches('/');
    add_key(found, word);
    if let [namespace, name] = word.split('/').collect::<Vec<_>>()[..] {
        found.pairs.insert((namespace.to_owned(), name.to_owned()));
    }
}

/// The names in a log's fields, `field=value` and `"field":"value"`.
fn harvest_lines(found: &mut Found, text: &str) {
    for word in text.split([' ', ',', '{', '}', '\n', '\t']) {
        let Some((field, value)) = word.split_once(['=', ':']) else {
            add_word(found, word);
            continue;
        };
        let (field, value) = (field.trim_matches('"'), value.trim_matches(['"', '\\']));
        if field == KEY {
            add_key(found, value);
        } else if FIELDS.contains(&field) && !value.is_empty() {
            value.split('/').for_each(|name| add(found, name));
            // A claim is `NAMESPACE/NAME`.
            let namespace = value.split_once('/').map(|(namespace, _)| namespace);
            found.namespaces.extend(namespace.or((field == NAMESPACE).then_some(value)).map(str::to_owned));
        } else {
            add_word(found, field);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(all: &[&str]) -> Names {
        Names::new(all.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_name_is_the_same_word_everywhere_and_another_one_in_another_report() {
        let known = names(&["web", "web-1", "kube-system"]);
        let word = known.hide("web-1");
        assert!(word.starts_with("name-") && word.len() == 21, "{word}");
        let text = known.hide("kube-system/web-1: netns /run/netns/cni-web-1, k8s_web-1_kube-system, webs");
        assert!(!text.contains("web-1") && !text.contains("kube-system"), "{text}");
        assert_eq!(text.matches(&word).count(), 3);
        assert!(text.ends_with("webs") && text.contains("/run/netns/cni-"));
        assert_ne!(names(&["web-1"]).hide("web-1"), word);
        assert_ne!(known.hide("web"), word);
    }

    #[test]
    fn ids_of_containers_that_nobody_knows_are_hashed_and_tags_are_not() {
        let id = "0af3b4c5".repeat(8);
        let text = names(&[]).hide(&format!("container {id} has 0af3b4c50af3b4c5"));
        assert!(!text.contains(&id) && text.ends_with(" has 0af3b4c50af3b4c5"), "{text}");
    }

    #[test]
    fn names_are_found_in_reports_and_in_logs() {
        let mut found = Found::default();
        let report = json!([{"network": "net", "container": "c1", "namespace": "ns", "pod": {"name": "p1"},
            "programs": [{"name": "from_container"}], "netns": "/run/netns/x9", "key": "net/c2/eth0",
            "pin": "v2/maps/PORTS", "findings": ["net/c6/eth0: ns/p5 lacks a program"]}]);
        harvest(&mut found, "", &report);
        harvest_lines(
            &mut found,
            "INFO attach key=net/c3/eth0 pod=\"p2\" claim=ns2/claim1\n{\"key\":\"net/c4/eth0\"} net/c5/eth0 takes: ns/p3, ns2/p4; 10.0.0.0/8 and/or /sys/fs/bpf",
        );
        let expected =
            ["c1", "c2", "c3", "c4", "c5", "c6", "claim1", "ns", "ns2", "p1", "p2", "p3", "p4", "p5", "x9"];
        assert_eq!(found.all().iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }
}
