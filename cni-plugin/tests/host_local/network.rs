//! A network in a directory of its own, used through the built-in IPAM.

use std::{
    collections::BTreeMap,
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use shunt::host_local::{self, Allocation, Error, Request};
use tempfile::TempDir;

pub(crate) const NAME: &str = "net";

/// A network with its configuration; its directory goes with it.
pub(crate) struct Network {
    dir: TempDir,
    ipam: Value,
}

impl Network {
    /// Of an `ipam` object, to which the directory is added.
    pub(crate) fn new(mut ipam: Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        ipam["type"] = json!("host-local");
        ipam["dataDir"] = json!(dir.path());
        Self { dir, ipam }
    }

    pub(crate) fn ipam(&self) -> &Value {
        &self.ipam
    }

    pub(crate) fn data_dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(NAME).join(name)
    }

    /// Changes the configuration, as an administrator might between an ADD and a DEL.
    pub(crate) fn reconfigure(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.ipam);
    }

    pub(crate) fn request<'a>(&'a self, container: &'a str, ifname: &'a str) -> Request<'a> {
        Request { network: NAME, container, ifname, config: &self.ipam, requested: vec![], ip_ranges: None }
    }

    pub(crate) fn add(&self, container: &str, ifname: &str) -> Result<Allocation, Error> {
        host_local::add(&self.request(container, ifname))
    }

    /// ADD with requested addresses.
    pub(crate) fn add_with(&self, container: &str, requested: &[&str]) -> Result<Allocation, Error> {
        let requested = requested.iter().map(|address| address.parse().unwrap()).collect();
        host_local::add(&Request { requested, ..self.request(container, "eth0") })
    }

    pub(crate) fn del(&self, container: &str, ifname: &str) -> Result<(), Error> {
        host_local::del(&self.request(container, ifname))
    }

    pub(crate) fn check(&self, container: &str, ifname: &str, expected: &[IpAddr]) -> Result<(), Error> {
        host_local::check(&self.request(container, ifname), expected)
    }

    pub(crate) fn gc(&self, valid: &[(&str, &str)]) -> Result<(), Error> {
        let owned = |(container, ifname): &(&str, &str)| ((*container).to_owned(), (*ifname).to_owned());
        host_local::gc(NAME, &self.ipam, &valid.iter().map(owned).collect::<Vec<_>>())
    }

    pub(crate) fn status(&self) -> Result<(), Error> {
        host_local::status(NAME, &self.ipam, None)
    }

    /// Every file of the network with its content, but for the lock.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        let Ok(entries) = fs::read_dir(self.file("")) else {
            return BTreeMap::new();
        };
        let file = |entry: Result<fs::DirEntry, _>| {
            let entry: fs::DirEntry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name != "lock").then(|| (name, fs::read_to_string(entry.path()).unwrap()))
        };
        entries.filter_map(file).collect()
    }

    /// Every held address with its record.
    pub(crate) fn held(&self) -> BTreeMap<IpAddr, String> {
        let files = self.files().into_iter();
        files.filter_map(|(name, content)| Some((name.parse().ok()?, content))).collect()
    }
}

/// The addresses of an answer as text, `address/prefix via gateway`.
pub(crate) fn text(allocation: &Allocation) -> Vec<String> {
    let line =
        |ip: &host_local::AllocatedIp| format!("{}/{} via {}", ip.address, ip.prefix, ip.gateway.unwrap());
    allocation.ips.iter().map(line).collect()
}
