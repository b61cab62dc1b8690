//! A container of the test's: a namespace that the node's configuration has been added to. Dropping it deletes it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value};
use shunt_regular_file::remove;

use super::chain::{Call, Chain, ChainError, IFNAME};
use super::namespace::Namespace;
use super::notes;
use super::undeleted::Undeleted;

/// How long after a DEL that fails the second one is.
const PAUSE: Duration = Duration::from_millis(500);

/// Why there is no container.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SandboxError {
    #[error("a network namespace cannot be made: {0}")]
    Namespace(#[from] std::io::Error),
    #[error("it cannot be noted for who would delete it: {0}")]
    Note(std::io::Error),
    #[error(transparent)]
    Chain(#[from] ChainError),
}

#[derive(Debug)]
pub(super) struct Sandbox {
    pub(super) id: String,
    pub(super) namespace: Namespace,
    chain: Chain,
    runtime: Map<String, Value>,
    result: Value,
    note: PathBuf,
    undeleted: Undeleted,
}

impl Sandbox {
    /// Makes one of this name.
    ///
    /// # Errors
    /// A plugin refuses, or is not there; nothing is left then but what is told.
    pub(super) fn make(
        directory: &Path,
        chain: &Chain,
        name: &str,
        runtime: Map<String, Value>,
        undeleted: &Undeleted,
    ) -> Result<Self, SandboxError> {
        chain.find_programs()?;
        let namespace = Namespace::make(directory, name)?;
        let id = notes::id(name);
        notes::write(directory, &id, chain, &runtime).map_err(SandboxError::Note)?;
        let (note, chain, undeleted) = (notes::path(directory, &id), chain.clone(), undeleted.clone());
        let mut sandbox = Self { id, namespace, chain, runtime, result: Value::Null, note, undeleted };
        sandbox.result = sandbox.chain.add(sandbox.call())?;
        Ok(sandbox)
    }

    fn call(&self) -> Call<'_> {
        Call { id: &self.id, netns: self.namespace.path(), runtime: &self.runtime }
    }

    /// Its addresses, each with its gateway.
    pub(super) fn addresses(&self) -> Vec<(IpAddr, Option<IpAddr>)> {
        let ips = self.result["ips"].as_array().into_iter().flatten();
        let of = |ip: &Value| {
            let address = ip["address"].as_str()?.split('/').next()?.parse().ok()?;
            Some((address, ip["gateway"].as_str().and_then(|gateway| gateway.parse().ok())))
        };
        ips.filter_map(of).collect()
    }

    /// Its address of a family.
    pub(super) fn address(&self, is_ipv6: bool) -> Option<IpAddr> {
        self.addresses().into_iter().map(|(address, _)| address).find(|address| address.is_ipv6() == is_ipv6)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let delete = || self.chain.delete(self.call(), &self.result);
        let deleted = delete().or_else(|_| {
            // An agent that is busy or starts has a DEL fail that succeeds later.
            thread::sleep(PAUSE);
            delete()
        });
        let (id, network) = (&self.id, self.chain.name());
        match deleted.map(|()| remove(&self.note)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.undeleted.tell(format!("{}: {error}; remove it", self.note.display())),
            Err(error) => self.undeleted.tell(format!(
                "container {id} of network {network}: {error}; its namespace is gone, and the next test, `uninstall`, a DEL of its {IFNAME} \
                 or the runtime's GC frees its addresses and ports"
            )),
        }
    }
}
