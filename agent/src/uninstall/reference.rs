//! The plugins that were there before: which there are, and how one is asked (CNI specification, section 3).

use std::env::join_paths;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use shunt_agent_api::AttachmentKey;

use super::names::{self, KEPT};

/// How long a plugin may take: iptables waits for its lock.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is looked after.
const PAUSE: Duration = Duration::from_millis(2);

/// Plugins of other projects in the runtimes' directories.
#[derive(Clone, Debug)]
pub(super) struct ReferencePlugins {
    directories: Vec<PathBuf>,
    portmap: Option<PathBuf>,
    bridge: Option<PathBuf>,
    /// Gives the addresses that its configuration names.
    has_static: bool,
}

impl ReferencePlugins {
    /// Looks for each in every directory: for what a name of ours has replaced there, else for the name itself.
    pub(super) fn find(directories: &[PathBuf]) -> Self {
        let find = |name: &str| {
            let own = directories.iter().map(|directory| directory.join(name));
            let mut paths = own.map(|own| if names::is_ours(&own) { own.with_extension(KEPT) } else { own });
            paths.find(|path| is_program(path))
        };
        Self {
            directories: directories.to_vec(),
            portmap: find("portmap"),
            bridge: find("bridge"),
            has_static: find("static").is_some(),
        }
    }

    /// What is missing to hand over host ports.
    pub(super) fn lacking_for_host_ports(&self) -> Option<String> {
        self.portmap.is_none().then(|| self.lacking("portmap"))
    }

    /// What is missing to hand over masquerading.
    pub(super) fn lacking_for_masquerading(&self) -> Option<String> {
        match (&self.bridge, self.has_static) {
            (None, _) => Some(self.lacking("bridge")),
            (_, false) => Some(self.lacking("static")),
            _ => None,
        }
    }

    fn lacking(&self, name: &str) -> String {
        let directories: Vec<_> =
            self.directories.iter().map(|directory| directory.display().to_string()).collect();
        format!(
            "there is no other plugin {name} in {}; put one there as {name}.{KEPT}",
            directories.join(" or ")
        )
    }

    /// Asks `portmap`.
    ///
    /// # Errors
    /// What the plugin says, or why it could not be asked.
    pub(super) fn portmap(&self, verb: &str, asked: &Asked<'_>) -> Result<(), String> {
        self.ask(self.portmap.as_deref(), "portmap", verb, asked)
    }

    /// Asks `bridge`.
    ///
    /// # Errors
    /// What the plugin says, or why it could not be asked.
    pub(super) fn bridge(&self, verb: &str, asked: &Asked<'_>) -> Result<(), String> {
        self.ask(self.bridge.as_deref(), "bridge", verb, asked)
    }

    fn ask(&self, program: Option<&Path>, name: &str, verb: &str, asked: &Asked<'_>) -> Result<(), String> {
        let program = program.ok_or_else(|| self.lacking(name))?;
        let mut command = Command::new(program);
        command
            // A kept one that is many plugins goes by the name that it had.
            .arg0(program.with_file_name(name))
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", &asked.key.container)
            .env("CNI_IFNAME", &asked.key.ifname)
            .env("CNI_NETNS", &asked.netns)
            .env("CNI_PATH", join_paths(&self.directories).unwrap_or_default());
        let failed = |why: String| format!("{verb} of {}: {why}", program.display());
        let (is_done, said) = run(&mut command, asked.config.to_string().as_bytes())
            .map_err(|error| failed(error.to_string()))?;
        if is_done {
            return Ok(());
        }
        let refusal: Option<Value> = serde_json::from_slice(&said).ok();
        let message = refusal.as_ref().and_then(|refusal| refusal["msg"].as_str());
        Err(failed(message.map_or_else(|| String::from_utf8_lossy(&said).trim().to_owned(), str::to_owned)))
    }
}

/// What a plugin is asked about.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) key: &'a AttachmentKey,
    pub(super) netns: PathBuf,
    pub(super) config: Value,
}

/// Runs a program to its end; whether it succeeded, and its output, which is smaller than a pipe.
fn run(command: &mut Command, input: &[u8]) -> io::Result<(bool, Vec<u8>)> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that reads nothing says why.
        let _closed = stdin.write_all(input);
    }
    let begun = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if begun.elapsed() > PATIENCE => {
                let _ended_already = child.kill();
                child.wait()?;
                return Err(io::ErrorKind::TimedOut.into());
            }
            None => sleep(PAUSE),
        }
    };
    let mut said = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut said)?;
    }
    Ok((status.success(), said))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_plugin_is_found_in_whichever_directory_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let directories = ["one", "two"].map(|name| dir.path().join(name));
        for directory in &directories {
            fs::create_dir(directory).unwrap();
        }
        let [one, two] = &directories;
        symlink("/bin/true", one.join("portmap.orig")).unwrap();
        symlink("shunt", one.join("portmap")).unwrap();
        symlink("shunt", one.join("bridge")).unwrap();
        symlink("/bin/true", two.join("bridge")).unwrap();
        let plugins = ReferencePlugins::find(&directories);
        assert_eq!(plugins.portmap, Some(one.join("portmap.orig")));
        assert_eq!(plugins.bridge, Some(two.join("bridge")));
        let lacking = plugins.lacking_for_masquerading().unwrap();
        let wanted = format!("no other plugin static in {} or {};", one.display(), two.display());
        assert!(lacking.contains(&wanted), "{lacking}");
        symlink("/bin/true", one.join("static")).unwrap();
        let plugins = ReferencePlugins::find(&directories);
        assert_eq!(plugins.lacking_for_masquerading(), None);
    }
}
