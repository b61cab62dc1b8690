//! The node's network configuration, executed as a runtime does it (CNI specification, sections 1 and 3).

use std::env::join_paths;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// How long a plugin may take.
const PATIENCE: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(5);

/// CNI's code for an invalid network namespace.
const INVALID_NETNS: u64 = 8;

/// The interface's name in each container.
pub(super) const IFNAME: &str = "eth0";

/// Why there is no container.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChainError {
    #[error("the plugin {plugin} cannot be run from {directories}: {source}")]
    Run { plugin: String, directories: String, source: io::Error },
    #[error("the plugin {plugin} refuses: {said}")]
    Refused { plugin: String, said: String },
    #[error(
        "the plugin {plugin} refuses the namespace: {said} (name a directory that it takes with --run-dir)"
    )]
    Netns { plugin: String, said: String },
}

/// A list of plugins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Chain {
    name: String,
    #[serde(rename = "cniVersion", default = "oldest")]
    version: String,
    plugins: Vec<Map<String, Value>>,
    #[serde(skip)]
    bin_dirs: Vec<PathBuf>,
}

fn oldest() -> String {
    "1.0.0".to_owned()
}

/// One container, as a plugin is told of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) id: &'a str,
    pub(super) netns: &'a Path,
    /// What the runtime asks of plugins that have the capability.
    pub(super) runtime: &'a Map<String, Value>,
}

impl Chain {
    /// The same with its plugins' programs in these directories, each in the first that has it.
    pub(super) fn run_from(self, bin_dirs: &[PathBuf]) -> Self {
        Self { bin_dirs: bin_dirs.to_vec(), ..self }
    }

    /// Whether one of its plugins is shunt's.
    pub(super) fn is_ours(&self) -> bool {
        self.plugins.iter().any(|plugin| kind(plugin).starts_with("shunt"))
    }

    /// Whether a plugin of it does what a runtime asks for by this key.
    pub(super) fn has_capability(&self, key: &str) -> bool {
        self.plugins.iter().any(|plugin| is_able(plugin, key))
    }

    /// Whether the first plugin makes ports of a bridge, by whatever name it is called.
    pub(super) fn is_of_bridge(&self) -> bool {
        self.plugins.first().is_some_and(|first| {
            let is_vlan = first.get("mode").and_then(Value::as_str) == Some("vlan");
            matches!(kind(first), "shunt" | "shunt-bridge" | "bridge") && !is_vlan
        })
    }

    /// The same with a key of the first plugin's.
    pub(super) fn with(mut self, key: &str, value: Value) -> Self {
        if let Some(first) = self.plugins.first_mut() {
            first.insert(key.to_owned(), value);
        }
        self
    }

    /// Another network by the first plugin, on a bridge of its own, without anything else that is configured.
    pub(super) fn beside(&self, bridge: &str, subnets: &[&str], leases: &Path) -> Self {
        let own = |key: &str| self.plugins.first().and_then(|first| first.get(key)).cloned();
        let ranges: Vec<_> = subnets.iter().map(|subnet| json!([{ "subnet": subnet }])).collect();
        let kept = ["type", "agentSocket"].into_iter().filter_map(|key| Some((key.to_owned(), own(key)?)));
        let plugin = kept.chain([
            ("bridge".to_owned(), json!(bridge)),
            ("isDefaultGateway".to_owned(), json!(true)),
            ("ipam".to_owned(), json!({ "type": "shunt-ipam", "ranges": ranges, "dataDir": leases })),
        ]);
        let plugins = vec![plugin.collect()];
        Self { name: format!("{}-{bridge}", self.name), plugins, ..self.clone() }
    }

    /// Takes the first plugin's bridge down, if shunt has made it and nothing is on it.
    ///
    /// # Errors
    /// The plugin refuses.
    pub(super) fn take_down(&self, any: Call<'_>) -> Result<(), ChainError> {
        match self.plugins.first() {
            Some(first) => self.run("DEINIT", first, any, &Value::Null).map(drop),
            None => Ok(()),
        }
    }

    /// The name of the network.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether every plugin's program is there: without one, a container could neither be added nor deleted.
    ///
    /// # Errors
    /// The first that is not there.
    pub(super) fn find_programs(&self) -> Result<(), ChainError> {
        self.plugins.iter().map(kind).try_for_each(|kind| self.program(kind).map(drop))
    }

    /// The program of a plugin. As with libcni a path is no plugin's name.
    fn program(&self, kind: &str) -> Result<PathBuf, ChainError> {
        let directories = self.bin_dirs.iter().filter(|_| !kind.is_empty() && !kind.contains('/'));
        let found = directories.map(|directory| directory.join(kind)).find(|path| path.is_file());
        found.ok_or_else(|| self.not_run(kind, io::ErrorKind::NotFound.into()))
    }

    fn not_run(&self, plugin: &str, source: io::Error) -> ChainError {
        let directories: Vec<_> =
            self.bin_dirs.iter().map(|directory| directory.display().to_string()).collect();
        ChainError::Run { plugin: plugin.to_owned(), directories: directories.join(", "), source }
    }

    /// Adds a container: the last plugin's result.
    ///
    /// # Errors
    /// A plugin fails; what was done before is undone by [`Chain::delete`].
    pub(super) fn add(&self, call: Call<'_>) -> Result<Value, ChainError> {
        let mut result = Value::Null;
        for plugin in &self.plugins {
            result = self.run("ADD", plugin, call, &result)?;
        }
        Ok(result)
    }

    /// Deletes it, by every plugin, in the opposite order. One that takes no such namespace has added nothing.
    ///
    /// # Errors
    /// The first plugin's that fails.
    pub(super) fn delete(&self, call: Call<'_>, result: &Value) -> Result<(), ChainError> {
        let all = self.plugins.iter().rev().map(|plugin| self.run("DEL", plugin, call, result));
        let all: Vec<_> = all.collect();
        all.into_iter().try_for_each(|done| match done {
            Ok(_) | Err(ChainError::Netns { .. }) => Ok(()),
            Err(error) => Err(error),
        })
    }

    fn run(
        &self,
        verb: &str,
        plugin: &Map<String, Value>,
        call: Call<'_>,
        previous: &Value,
    ) -> Result<Value, ChainError> {
        let kind = kind(plugin);
        let mut command = Command::new(self.program(kind)?);
        command.env("CNI_COMMAND", verb).env("CNI_CONTAINERID", call.id).env("CNI_NETNS", call.netns);
        command.env("CNI_IFNAME", IFNAME).env_remove("CNI_ARGS");
        command.env("CNI_PATH", join_paths(&self.bin_dirs).unwrap_or_default());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A terminal's Ctrl-C is for the whole group of the test, and would kill a DEL.
        command.process_group(0);
        let config = self.config(plugin, call.runtime, previous).to_string();
        let done = execute(&mut command, config.as_bytes());
        let (is_done, said) = done.map_err(|source| self.not_run(kind, source))?;
        if is_done {
            return Ok(serde_json::from_str(&said).unwrap_or_default());
        }
        Err(refusal(kind, said.trim()))
    }

    fn config(&self, plugin: &Map<String, Value>, runtime: &Map<String, Value>, previous: &Value) -> Value {
        let mut config = plugin.clone();
        config.insert("name".to_owned(), json!(self.name));
        config.insert("cniVersion".to_owned(), json!(self.version));
        let asked = runtime.iter().filter(|(key, _)| is_able(plugin, key));
        let asked: Map<_, _> = asked.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !asked.is_empty() {
            config.insert("runtimeConfig".to_owned(), Value::Object(asked));
        }
        if !previous.is_null() {
            config.insert("prevResult".to_owned(), previous.clone());
        }
        Value::Object(config)
    }
}

fn kind(plugin: &Map<String, Value>) -> &str {
    plugin.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn is_able(plugin: &Map<String, Value>, key: &str) -> bool {
    plugin.get("capabilities").and_then(|capabilities| capabilities.get(key)) == Some(&Value::Bool(true))
}

/// What a plugin's error says, with the cure where it is the test's to cure.
fn refusal(plugin: &str, said: &str) -> ChainError {
    let error: Value = serde_json::from_str(said).unwrap_or_default();
    let (plugin, said) = (plugin.to_owned(), said.to_owned());
    match error["code"].as_u64() {
        Some(INVALID_NETNS) => ChainError::Netns { plugin, said },
        _ => ChainError::Refused { plugin, said },
    }
}

/// Whether it succeeded, and what it printed.
fn execute(command: &mut Command, input: &[u8]) -> io::Result<(bool, String)> {
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A plugin that refuses before it reads says why.
        let _closed = stdin.write_all(input);
    }
    let reader = child.stdout.take().map(|mut stdout| {
        thread::spawn(move || {
            let mut said = String::new();
            let _cut = stdout.read_to_string(&mut said);
            said
        })
    });
    let is_done = wait(&mut child)?;
    Ok((is_done, reader.and_then(|reader| reader.join().ok()).unwrap_or_default()))
}

fn wait(child: &mut Child) -> io::Result<bool> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn plugins_hear_what_they_are_able_to_and_their_programs_are_looked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let list = json!({ "name": "b", "cniVersion": "1.1.0", "plugins": [
            { "type": "shunt", "capabilities": { "ips": true, "bandwidth": false } }, { "type": "tuning" }] });
        let chain =
            serde_json::from_value::<Chain>(list).unwrap().run_from(&[path.join("none"), path.to_path_buf()]);
        assert!(chain.is_ours() && chain.is_of_bridge());
        assert!(chain.has_capability("ips") && !chain.has_capability("bandwidth"));
        assert!(!chain.clone().with("mode", json!("vlan")).is_of_bridge());
        let asked = json!({ "ips": ["10.0.0.1"], "bandwidth": {} });
        let config = chain.config(&chain.plugins[0], asked.as_object().unwrap(), &json!({ "ips": [] }));
        assert_eq!(config["runtimeConfig"], json!({ "ips": ["10.0.0.1"] }));
        assert_eq!((&config["name"], &config["prevResult"]), (&json!("b"), &json!({ "ips": [] })));
        let call = Call { id: "c", netns: path, runtime: &Map::new() };
        assert!(matches!(chain.add(call), Err(ChainError::Run { .. })), "there is no plugin");
        for name in ["shunt", "tuning"] {
            let missing = chain.find_programs().unwrap_err().to_string();
            assert!(missing.contains(&format!("the plugin {name} cannot be run")), "{missing}");
            fs::write(path.join(name), "").unwrap();
        }
        chain.find_programs().unwrap();
    }

    #[test]
    fn a_namespace_where_the_agent_takes_none_is_refused_with_the_cure() {
        let said = r#"{ "cniVersion": "1.0.0", "code": 8, "msg": "is in none of the allowed directories" }"#;
        let refused = refusal("shunt", said).to_string();
        assert!(refused.contains("allowed directories") && refused.contains("--run-dir"), "{refused}");
        for other in [&*said.replace('8', "11"), "", "words"] {
            assert!(matches!(refusal("shunt", other), ChainError::Refused { .. }), "{other}");
        }
    }
}
