//! The agent of one node: started, asked, killed, started again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use serde_json::Value;
use shunt_agent_api::{AgentStatus, DropReport, PortReport};

use crate::daemon::{self, Daemon};
use crate::{Lab, Namespace, patience};

/// How long a start or a stop may take on a busy machine. A start is a quarter of a second of computing (an unoptimized
/// agent, whose programs the verifier judges) and waits for nothing else, but beside 24 busy processes of a higher
/// priority it was seen to wait 24 s for its turn.
const PATIENCE: Duration = Duration::from_secs(90);

/// An agent and the directories that outlive its process.
#[derive(Debug)]
pub struct Agent {
    program: PathBuf,
    arguments: Vec<String>,
    socket: PathBuf,
    state: PathBuf,
    bpffs: PathBuf,
    log: PathBuf,
    loads_all: bool,
    running: Option<Daemon>,
}

impl Agent {
    /// Gives it its directories, under the node's `home`; starts nothing.
    pub(crate) fn prepare(lab: &Lab, name: &str, home: &Path, program: PathBuf) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            socket: home.join("agent.sock"),
            state: home.join("state"),
            bpffs: lab.bpf_directory(name),
            log: home.join("agent.log"),
            loads_all: lab.loads_all(),
            running: None,
        }
    }

    /// Has it started with more arguments.
    pub(crate) fn set_arguments(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    }

    /// Has it started with these as well from now on.
    pub fn also_say(&mut self, arguments: &[&str]) {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    }

    /// Has it started from another build from now on, and says from which it was.
    pub fn replace_program(&mut self, program: PathBuf) -> PathBuf {
        std::mem::replace(&mut self.program, program)
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its state directory.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Its directory of pins.
    pub fn bpffs(&self) -> &Path {
        &self.bpffs
    }

    /// Its process, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.running.as_ref().map(Daemon::id)
    }

    /// Starts it in `namespace` and waits until it answers.
    ///
    /// # Errors
    /// When it ends or does not answer in time; its log is in the error.
    pub fn start(&mut self, namespace: &Namespace) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("run").arg("--socket").arg(&self.socket).arg("--state-dir").arg(&self.state);
        command.arg("--bpffs").arg(&self.bpffs);
        // Many agents run on one machine, and few of them translate much.
        if !self.arguments.iter().any(|argument| argument == "--max-flows") {
            command.args(["--max-flows", "65536"]);
        }
        if !self.loads_all {
            command.arg("--late-programs");
        }
        command.args(&self.arguments);
        let mut daemon = Daemon::start(namespace, command, &self.log)?;
        let begun = Instant::now();
        while let Err(error) = self.ask("status") {
            if let Some(status) = daemon.ended() {
                bail!("the agent ended at its start ({status}):\n{}", daemon.log_tail());
            }
            if begun.elapsed() > patience(PATIENCE) {
                bail!("the agent does not answer: {error:#}\n{}", daemon.log_tail());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.running = Some(daemon);
        Ok(())
    }

    /// Ends it as a service manager would, with SIGTERM.
    ///
    /// # Errors
    /// When it does not end.
    pub fn terminate(&mut self) -> Result<()> {
        self.end(Signal::SIGTERM)
    }

    /// Ends it as the OOM killer would, with SIGKILL.
    ///
    /// # Errors
    /// When it does not end.
    pub fn kill(&mut self) -> Result<()> {
        self.end(Signal::SIGKILL)
    }

    fn end(&mut self, signal: Signal) -> Result<()> {
        let Some(mut daemon) = self.running.take() else { bail!("the agent does not run") };
        daemon.stop(signal, patience(PATIENCE)).map(drop)
    }

    /// `status`.
    ///
    /// # Errors
    /// When the agent cannot be reached.
    pub fn status(&self) -> Result<AgentStatus> {
        serde_json::from_value(self.ask("status")?).context("read the status")
    }

    /// `ports`.
    ///
    /// # Errors
    /// When the agent cannot be reached.
    pub fn ports(&self) -> Result<Vec<PortReport>> {
        serde_json::from_value(self.ask("ports")?).context("read the ports' report")
    }

    /// The report of the one port of `container`.
    ///
    /// # Errors
    /// When there is none.
    pub fn port(&self, container: &str) -> Result<PortReport> {
        let found = self.ports()?.into_iter().find(|port| port.container == container);
        found.with_context(|| format!("no port of {container}"))
    }

    /// `drops`.
    ///
    /// # Errors
    /// When the agent cannot be reached.
    pub fn drops(&self) -> Result<Vec<DropReport>> {
        serde_json::from_value(self.ask("drops")?).context("read the drops' report")
    }

    /// The JSON that a query verb (`status`, `ports`, `fdb`, `drops`) prints.
    ///
    /// # Errors
    /// When the agent cannot be reached or what it prints is not JSON.
    pub fn ask(&self, verb: &str) -> Result<Value> {
        self.ask_with(verb, &[])
    }

    /// The same with more arguments.
    ///
    /// # Errors
    /// As [`Agent::ask`].
    pub fn ask_with(&self, verb: &str, arguments: &[&str]) -> Result<Value> {
        let output = Command::new(&self.program)
            .args([verb, "--json"])
            .args(arguments)
            .arg("--socket")
            .arg(&self.socket)
            .output()
            .with_context(|| format!("run {}", self.program.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`shunt-agent {verb}` failed ({}): {}", output.status, said.trim());
        }
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("what `shunt-agent {verb} --json` printed"))
    }

    /// The last lines that it logged.
    pub fn log_tail(&self) -> String {
        daemon::tail(&self.log)
    }
}
