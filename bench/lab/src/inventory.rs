//! What is there, line by line, so that two moments can be compared and the difference read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Namespace;

/// Lines such as `link cni0`, `address cni0 10.0.0.1/24`, `lease default/10.0.0.2`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    lines: BTreeSet<String>,
}

impl Inventory {
    /// Links, addresses, routes and netfilter rules of a namespace. Link-local IPv6 is left out: it comes and goes on
    /// its own.
    ///
    /// # Errors
    /// When `ip` or `nft` cannot be run.
    pub fn of_namespace(namespace: &Namespace) -> Result<Self> {
        let mut inventory = Self::default();
        for link in ip(namespace, &["-json", "address", "show"])? {
            let name = link["ifname"].as_str().unwrap_or_default();
            inventory.lines.insert(format!("link {name}"));
            for address in link["addr_info"].as_array().into_iter().flatten() {
                if address["scope"] != "link" {
                    let (local, prefix) =
                        (address["local"].as_str().unwrap_or_default(), &address["prefixlen"]);
                    inventory.lines.insert(format!("address {name} {local}/{prefix}"));
                }
            }
        }
        for route in ip(namespace, &["-json", "route", "show"])? {
            let [to, through] = ["dst", "dev"].map(|field| route[field].as_str().unwrap_or_default());
            inventory.lines.insert(format!("route {to} dev {through}"));
        }
        let rules = namespace.command("nft", &["--stateless", "list", "ruleset"])?;
        inventory
            .lines
            .extend(rules.lines().filter(|line| !line.trim().is_empty()).map(|line| format!("rule {line}")));
        Ok(inventory)
    }

    /// Adds every file below `directory`, called `kind`. Lock files are left out: they are made once and stay.
    pub fn add_files(&mut self, kind: &str, directory: &Path) {
        for file in files_below(directory) {
            let name = file.strip_prefix(directory).unwrap_or(&file);
            let text = name.to_string_lossy();
            if !text.ends_with("lock") && !text.contains("last_reserved_ip") {
                self.lines.insert(format!("{kind} {text}"));
            }
        }
    }

    /// Adds every pin below `directory`.
    pub fn add_pins(&mut self, directory: &Path) {
        self.add_files("pin", directory);
    }

    /// The lines of this that `before` has not.
    pub fn since(&self, before: &Self) -> Vec<String> {
        self.lines.difference(&before.lines).cloned().collect()
    }

    /// The same with other words.
    #[must_use]
    pub fn map(&self, say: impl Fn(&str) -> String) -> Self {
        Self { lines: self.lines.iter().map(|line| say(line)).collect() }
    }

    /// Whether there is a line that begins with `prefix`.
    pub fn has(&self, prefix: &str) -> bool {
        self.lines.iter().any(|line| line.starts_with(prefix))
    }
}

fn ip(namespace: &Namespace, arguments: &[&str]) -> Result<Vec<Value>> {
    let text = namespace.command("ip", arguments)?;
    // iproute2 prints nothing at all where it has nothing to say, not an empty list.
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str(&text).with_context(|| format!("what `ip {}` printed", arguments.join(" ")))
}

/// Every file below `directory`, in order; none where there is no such directory.
pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}
