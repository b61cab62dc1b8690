//! A network configuration list, executed as libcni does it: ADD along the chain, DEL back along it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::cni::{Call, Refusal};
use crate::container::IFNAME;
use crate::{Container, Namespace};

/// A list of plugins under one name, and where the programs are.
#[derive(Debug, Clone)]
pub struct Network {
    name: String,
    version: String,
    plugins: Vec<Map<String, Value>>,
    path: PathBuf,
}

/// What an ADD gave.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// The last plugin's result; also what CHECK and DEL are handed as `prevResult`.
    pub result: Value,
    /// All execs together.
    pub took: Duration,
}

impl Attachment {
    /// The first IPv4 address.
    ///
    /// # Errors
    /// When there is none.
    pub fn ipv4(&self) -> Result<Ipv4Addr> {
        let found = self.addresses().into_iter().find_map(|ip| match ip {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        });
        found.with_context(|| format!("no IPv4 address in {}", self.result))
    }

    /// The first IPv6 address.
    ///
    /// # Errors
    /// When there is none.
    pub fn ipv6(&self) -> Result<Ipv6Addr> {
        let found = self.addresses().into_iter().find_map(|ip| match ip {
            IpAddr::V6(ip) => Some(ip),
            IpAddr::V4(_) => None,
        });
        found.with_context(|| format!("no IPv6 address in {}", self.result))
    }

    /// Every address of the result, in its order.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let ips = self.result["ips"].as_array().into_iter().flatten();
        ips.filter_map(|ip| ip["address"].as_str()?.split('/').next()?.parse().ok()).collect()
    }
}

impl Network {
    /// A list of one `plugin` under `name`, whose program is in the directory `path`.
    ///
    /// # Panics
    /// When it is not a JSON object.
    #[allow(clippy::expect_used, reason = "a configuration is written in the program's text")]
    pub fn new(name: &str, path: &Path, plugin: Value) -> Self {
        let config = plugin.as_object().cloned().expect("a plugin's configuration is an object");
        let version = "1.0.0".to_owned();
        Self { name: name.to_owned(), version, plugins: vec![config], path: path.to_path_buf() }
    }

    /// A list as a file of the runtime's has it.
    ///
    /// # Panics
    /// When it is none.
    #[allow(clippy::expect_used, reason = "a configuration is written in the program's text")]
    pub fn of_list(list: &Value, path: &Path) -> Self {
        let text = |key: &str| list[key].as_str().expect("a list has a name and a version").to_owned();
        let plugins = list["plugins"].as_array().expect("a list has plugins").iter();
        let plugins = plugins.map(|plugin| plugin.as_object().cloned().expect("a plugin is an object"));
        Self {
            name: text("name"),
            version: text("cniVersion"),
            plugins: plugins.collect(),
            path: path.to_path_buf(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same network with `key` set in the first plugin's configuration.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        if let Some(first) = self.plugins.first_mut() {
            first.insert(key.to_owned(), value);
        }
        self
    }

    /// The same network with another plugin chained to its end.
    ///
    /// # Panics
    /// When it is not a JSON object.
    #[must_use]
    #[allow(clippy::expect_used, reason = "a configuration is written in the program's text")]
    pub fn then(mut self, plugin: Value) -> Self {
        self.plugins.push(plugin.as_object().cloned().expect("a plugin's configuration is an object"));
        self
    }

    /// Adds `container` as `eth0`. Where a plugin of the chain fails, those before it are undone, as runtimes do.
    ///
    /// # Errors
    /// A [`Refusal`] when a plugin fails.
    pub fn add(&self, node: &Namespace, container: &Container) -> Result<Attachment> {
        let mut attachment = Attachment { result: Value::Null, took: Duration::ZERO };
        for plugin in &self.plugins {
            let config = self.config(plugin, &attachment.result);
            let done = self.call("ADD", plugin, container, &config).run(node)?;
            attachment.took += done.took;
            match done.outcome {
                Ok(result) => attachment.result = result,
                Err(refusal) => {
                    if self.plugins.len() > 1 {
                        self.del(node, container, &attachment.result).ok();
                    }
                    return Err(refusal.into());
                }
            }
        }
        Ok(attachment)
    }

    /// Removes `container`'s `eth0`; `result` is what ADD gave. The time of all execs together.
    ///
    /// # Errors
    /// The first [`Refusal`], after every plugin has had its turn.
    pub fn del(&self, node: &Namespace, container: &Container, result: &Value) -> Result<Duration> {
        let mut took = Duration::ZERO;
        let mut first: Option<Refusal> = None;
        for plugin in self.plugins.iter().rev() {
            let config = self.config(plugin, result);
            let done = self.call("DEL", plugin, container, &config).run(node)?;
            took += done.took;
            first = first.or(done.outcome.err());
        }
        first.map_or(Ok(took), |refusal| Err(refusal.into()))
    }

    /// Asks every plugin whether `container`'s `eth0` is as `result` says.
    ///
    /// # Errors
    /// The first [`Refusal`].
    pub fn check(&self, node: &Namespace, container: &Container, result: &Value) -> Result<()> {
        for plugin in &self.plugins {
            let config = self.config(plugin, result);
            self.call("CHECK", plugin, container, &config).run(node)?.outcome?;
        }
        Ok(())
    }

    /// Begins the verb for `container`, and ends the first plugin with SIGKILL after a while. Whether it was still running then.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn interrupt(
        &self,
        verb: &str,
        node: &Namespace,
        container: &Container,
        result: &Value,
        moment: Duration,
    ) -> Result<bool> {
        let Some(plugin) = self.plugins.first() else { return Ok(false) };
        let config = self.config(plugin, result);
        self.call(verb, plugin, container, &config).kill_after(node, moment)
    }

    /// Has the first plugin do the verb for `container` one instruction at a time; `visit` hears where each one is.
    ///
    /// # Errors
    /// A [`Refusal`] when it fails.
    pub fn step(
        &self,
        verb: &str,
        node: &Namespace,
        container: &Container,
        result: &Value,
        visit: impl FnMut(u64) + Send,
    ) -> Result<Value> {
        let Some(plugin) = self.plugins.first() else { return Ok(Value::Null) };
        let config = self.config(plugin, result);
        Ok(self.call(verb, plugin, container, &config).step(node, visit)??)
    }

    /// Has everything collected that is not one of `valid`. `any` container lends its id, which GC does not read.
    ///
    /// # Errors
    /// The first [`Refusal`].
    pub fn collect(&self, node: &Namespace, valid: &[&Container], any: &Container) -> Result<()> {
        let valid: Vec<_> =
            valid.iter().map(|one| json!({ "containerID": one.id(), "ifname": IFNAME })).collect();
        for plugin in &self.plugins {
            let mut plugin = plugin.clone();
            plugin.insert("cni.dev/valid-attachments".to_owned(), json!(valid));
            let list = Self { version: "1.1.0".to_owned(), ..self.clone() };
            let config = list.config(&plugin, &Value::Null);
            self.call("GC", &plugin, any, &config).run(node)?.outcome?;
        }
        Ok(())
    }

    /// Has the first plugin do any `verb`. `any` container lends its id, which verbs of a network do not read.
    ///
    /// # Errors
    /// A [`Refusal`] when it fails.
    pub fn verb(&self, verb: &str, node: &Namespace, any: &Container) -> Result<Value> {
        let Some(plugin) = self.plugins.first() else { return Ok(Value::Null) };
        let list = Self { version: "1.1.0".to_owned(), ..self.clone() };
        let config = list.config(plugin, &Value::Null);
        Ok(self.call(verb, plugin, any, &config).run(node)?.outcome?)
    }

    fn call<'a>(
        &'a self,
        verb: &'a str,
        plugin: &'a Map<String, Value>,
        to: &'a Container,
        config: &'a [u8],
    ) -> Call<'a> {
        Call {
            verb,
            container: to.id(),
            netns: to.namespace().path(),
            ifname: IFNAME,
            path: &self.path,
            plugin: plugin["type"].as_str().unwrap_or_default(),
            config,
        }
    }

    /// What one plugin reads: its part of the list, the list's name and version, and what came before it.
    fn config(&self, plugin: &Map<String, Value>, previous: &Value) -> Vec<u8> {
        let mut config = plugin.clone();
        config.insert("name".to_owned(), json!(self.name));
        config.insert("cniVersion".to_owned(), json!(self.version));
        if !previous.is_null() {
            config.insert("prevResult".to_owned(), previous.clone());
        }
        Value::Object(config).to_string().into_bytes()
    }
}
