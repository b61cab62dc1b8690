//! One exec of a CNI plugin, as a runtime does it (CNI spec, section 2).

use std::io::Write;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{Namespace, stepped};

/// What a plugin is asked to do.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// `CNI_COMMAND`.
    pub verb: &'a str,
    /// `CNI_CONTAINERID`.
    pub container: &'a str,
    /// `CNI_NETNS`; may be empty at DEL.
    pub netns: &'a Path,
    /// `CNI_IFNAME`.
    pub ifname: &'a str,
    /// `CNI_PATH`: where the plugin and those that it delegates to are looked for.
    pub path: &'a Path,
    /// The program's name in there.
    pub plugin: &'a str,
    /// What it reads on its standard input.
    pub config: &'a [u8],
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Done {
    /// What the plugin printed, or that it failed.
    pub outcome: Result<Value, Refusal>,
    /// From before the exec until its end was seen.
    pub took: Duration,
}

/// A failure as the plugin reported it (CNI spec, section 5, "Error").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The error code; 0 when the plugin printed no error object.
    pub code: u64,
    /// The one-line message, or whatever else it printed.
    pub message: String,
    /// The long message.
    pub details: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CNI error {}: {} {}", self.code, self.message, self.details)
    }
}

impl std::error::Error for Refusal {}

impl Call<'_> {
    /// Runs the plugin in the node's namespace.
    ///
    /// # Errors
    /// When it cannot be started at all; its own failures are in [`Done::outcome`].
    pub fn run(&self, node: &Namespace) -> Result<Done> {
        let program = self.path.join(self.plugin);
        let mut command = self.dress(Command::new(&program));
        let (output, took) = node
            .enter(|| -> std::io::Result<(Output, Duration)> {
                let begun = Instant::now();
                let child = self.start(&mut command)?;
                let output = child.wait_with_output()?;
                Ok((output, begun.elapsed()))
            })?
            .with_context(|| format!("run {}", program.display()))?;
        Ok(Done { outcome: read(&output), took })
    }

    /// Runs the plugin and ends it with SIGKILL after a while. Whether it was still running then.
    ///
    /// # Errors
    /// When it cannot be started at all.
    pub fn kill_after(&self, node: &Namespace, moment: Duration) -> Result<bool> {
        let program = self.path.join(self.plugin);
        let mut command = self.dress(Command::new(&program));
        let status = node
            .enter(|| {
                let mut child = self.start(&mut command)?;
                std::thread::sleep(moment);
                child.kill()?;
                child.wait()
            })?
            .with_context(|| format!("run {}", program.display()))?;
        Ok(status.signal().is_some())
    }

    /// Runs the plugin one instruction at a time; `visit` hears where each one is.
    ///
    /// # Errors
    /// When it cannot be started or watched; its own failures are the answer's.
    pub fn step(&self, node: &Namespace, visit: impl FnMut(u64) + Send) -> Result<Result<Value, Refusal>> {
        let mut command = self.dress(stepped::waiting(&self.path.join(self.plugin)));
        let output = node.enter(|| stepped::step(self.start(&mut command)?, visit))??;
        Ok(read(&output))
    }

    fn dress(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("CNI_COMMAND", self.verb)
            .env("CNI_CONTAINERID", self.container)
            .env("CNI_NETNS", self.netns)
            .env("CNI_IFNAME", self.ifname)
            .env("CNI_PATH", self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn start(&self, command: &mut Command) -> std::io::Result<Child> {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A plugin that refuses before it reads closes the pipe: its answer tells why, not our write.
            drop(stdin.write_all(self.config));
        }
        Ok(child)
    }
}

fn read(output: &Output) -> Result<Value, Refusal> {
    let printed: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    if output.status.success() {
        return Ok(printed.unwrap_or(Value::Null));
    }
    let text = |field: &str| Some(printed.as_ref()?.get(field)?.as_str()?.to_owned());
    let raw = || {
        let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        format!("{}: {} {}", output.status, out.trim(), err.trim())
    };
    Err(Refusal {
        code: printed.as_ref().and_then(|error| error.get("code")?.as_u64()).unwrap_or(0),
        message: text("msg").unwrap_or_else(raw),
        details: text("details").unwrap_or_default(),
    })
}

/// A directory with the plugin under each of the names that its `type` may have.
///
/// # Errors
/// When the directory cannot be written.
pub fn link_plugin(directory: PathBuf, plugin: &Path) -> Result<PathBuf> {
    for name in ["shunt", "shunt-bridge", "shunt-vlan", "shunt-portmap", "shunt-bandwidth", "shunt-ipam"] {
        let link = directory.join(name);
        std::os::unix::fs::symlink(plugin, &link).with_context(|| format!("link {}", link.display()))?;
    }
    Ok(directory)
}
