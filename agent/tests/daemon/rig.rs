//! A node with a bridge, an agent process, and container ends that the test makes itself.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use shunt_agent_api::{
    AgentError, AgentStatus, Attached, AttachmentKey, Bandwidth, BridgePort, Client, ClientError, Interface,
    PortReport, Reply, Request, Restrictions, Service,
};
use shunt_lab::{Lab, Namespace, uninterrupted};

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long an agent may take to end by itself.
const PARTING: Duration = Duration::from_secs(2);

/// The bridge of every rig.
pub(crate) const BRIDGE: &str = "br0";

/// Fields are dropped in their order, the lab last; the process is ended first.
pub(crate) struct Rig {
    process: Option<Child>,
    pub(crate) containers: Vec<Namespace>,
    pub(crate) node: Namespace,
    pub(crate) lab: Lab,
}

impl Rig {
    /// A node with a bridge, and no agent.
    pub(crate) fn bare() -> Self {
        let lab = Lab::new().unwrap();
        let node = lab.namespace("node").unwrap();
        let rig = Self { process: None, containers: Vec::new(), node, lab };
        rig.ip(&["link", "add", BRIDGE, "type", "bridge"]);
        rig.ip(&["addr", "add", "10.88.0.1/24", "dev", BRIDGE]);
        rig.ip(&["link", "set", BRIDGE, "up"]);
        rig
    }

    /// The same with an agent that attaches in this way.
    pub(crate) fn start(attach: &str) -> Self {
        let mut rig = Self::bare();
        rig.run(attach);
        rig
    }

    /// The same with an agent that leaves alone what is wrong.
    pub(crate) fn start_without_repairs() -> Self {
        let mut rig = Self::bare();
        rig.run_with("auto", &["--no-repairs"]);
        rig
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.lab.root().join("agent.sock")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.lab.root().join("state")
    }

    /// The agent's process.
    pub(crate) fn id(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// Stops the agent, or has it go on.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id().cast_signed()), signal).unwrap();
    }

    /// A path below the agent's pins.
    pub(crate) fn pin(&self, path: &str) -> PathBuf {
        self.lab.bpf_directory("agent").join("v2").join(path)
    }

    /// The log of every agent of this rig. Lines are written a moment after what they tell: it is read until none is added.
    pub(crate) fn log(&self) -> String {
        let read = || fs::read_to_string(self.lab.root().join("log")).unwrap_or_default();
        let mut text = read();
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(20));
            let before = std::mem::replace(&mut text, read());
            if before == text {
                break;
            }
        }
        text
    }

    /// The agent's command line, to be started inside the node.
    pub(crate) fn command(&self, attach: &str) -> Command {
        let log = File::options().create(true).append(true).open(self.lab.root().join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
        command.arg("run").arg("--socket").arg(self.socket()).arg("--state-dir").arg(self.state());
        command.arg("--bpffs").arg(self.lab.bpf_directory("agent")).args([
            "--attach",
            attach,
            "--late-programs",
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command
    }

    /// Starts the agent and waits until it answers.
    pub(crate) fn run(&mut self, attach: &str) {
        self.run_with(attach, &[]);
    }

    /// The same with more arguments.
    pub(crate) fn run_with(&mut self, attach: &str, arguments: &[&str]) {
        let mut command = self.command(attach);
        command.args(arguments);
        self.run_command(command);
    }

    /// What the agent writes as its log, where that is a pipe.
    pub(crate) fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.process.as_mut()?.stderr.take()
    }

    /// Starts an agent from this command and waits until it answers.
    pub(crate) fn run_command(&mut self, mut command: Command) {
        self.process = Some(self.node.enter(|| command.spawn().unwrap()).unwrap());
        let answers =
            || Client::connect(&self.socket()).and_then(|mut client| client.ask(Request::Status)).is_ok();
        eventually("the agent answers", || answers() || panic_if_ended(&self.log()));
    }

    /// Runs an agent that is expected to end by itself, and gives its exit code.
    pub(crate) fn run_to_end(&self, mut command: Command) -> i32 {
        let mut process = self.node.enter(|| command.spawn().unwrap()).unwrap();
        let begun = Instant::now();
        loop {
            if let Some(status) = process.try_wait().unwrap() {
                return status.code().unwrap();
            }
            if begun.elapsed() > PATIENCE {
                process.kill().unwrap();
                process.wait().unwrap();
                panic!("the agent runs, and should not:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The same with log lines in JSON.
    pub(crate) fn run_with_json_logs(&mut self) {
        self.run_with("auto", &["--log-format", "json"]);
    }

    /// Ends the agent with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Makes a container's interface, up and with its address, and describes it as the plugin would.
    pub(crate) fn container(&mut self, number: u8) -> BridgePort {
        let namespace = self.lab.namespace(&format!("c{number}")).unwrap();
        let (host, mac) = (format!("veth{number}"), format!("02:00:00:00:00:{number:02x}"));
        let path = namespace.path().to_str().unwrap();
        self.ip(&[
            "link", "add", &host, "type", "veth", "peer", "name", "eth0", "address", &mac, "netns", path,
        ]);
        self.ip(&["link", "set", &host, "master", BRIDGE, "up"]);
        namespace.command("ip", &["addr", "add", &format!("10.88.0.{number}/24"), "dev", "eth0"]).unwrap();
        namespace.command("ip", &["link", "set", "eth0", "up"]).unwrap();
        self.containers.push(namespace);
        BridgePort {
            key: AttachmentKey {
                network: "net".into(),
                container: format!("c{number}"),
                ifname: "eth0".into(),
            },
            bridge: self.interface(BRIDGE),
            host: self.interface(&host),
            mac,
            ips: vec![format!("10.88.0.{number}").parse().unwrap()],
            mtu: 1500,
            netns: None,
            peer_up: true,
            masquerade: Vec::new(),
            unmasqueraded: Vec::new(),
            restrictions: Restrictions::default(),
            mappings: Vec::new(),
            bandwidth: Bandwidth::default(),
            service: Service::default(),
            lease_dir: None,
            vlan: None,
            pod: None,
        }
    }

    pub(crate) fn interface(&self, name: &str) -> Interface {
        let index = self.node.enter(|| nix::net::if_::if_nametoindex(name).unwrap()).unwrap();
        Interface { name: name.to_owned(), index }
    }

    pub(crate) fn ip(&self, arguments: &[&str]) -> String {
        self.node.command("ip", arguments).unwrap()
    }

    pub(crate) fn ask(&self, request: Request) -> Result<Reply, AgentError> {
        let mut client =
            Client::connect(&self.socket()).unwrap_or_else(|error| panic!("{error}\n{}", self.log()));
        match client.ask(request) {
            Err(ClientError::Refused(refusal)) => Err(refusal),
            answer => Ok(answer.unwrap_or_else(|error| panic!("{error}\n{}", self.log()))),
        }
    }

    pub(crate) fn attach(&self, port: &BridgePort) -> Result<Attached, AgentError> {
        self.attach_as(port, false)
    }

    /// The same, and has the agent set the host's end up, or not.
    pub(crate) fn attach_as(&self, port: &BridgePort, set_up: bool) -> Result<Attached, AgentError> {
        match self.ask(Request::Attach { port: port.clone(), set_up })? {
            Reply::Attached(attached) => Ok(attached),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn detach(&self, port: &BridgePort) -> Option<BridgePort> {
        match self.ask(Request::Detach { key: port.key.clone(), link: None }) {
            Ok(Reply::Detached(detached)) => detached.port.map(|port| *port),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn check(&self, port: &BridgePort) -> Result<(), AgentError> {
        self.ask(Request::Check { port: port.clone() }).map(|reply| assert_eq!(reply, Reply::Checked))
    }

    pub(crate) fn status(&self) -> AgentStatus {
        match self.ask(Request::Status) {
            Ok(Reply::Status(status)) => status,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn ports(&self) -> Vec<PortReport> {
        match self.ask(Request::Ports) {
            Ok(Reply::Ports(ports)) => ports,
            other => panic!("{other:?}"),
        }
    }

    /// Packets that were dropped for this reason, on any port.
    pub(crate) fn drops(&self, reason: &str) -> u64 {
        match self.ask(Request::Drops) {
            Ok(Reply::Drops(drops)) => {
                drops.iter().filter(|drop| drop.reason == reason).map(|drop| drop.packets).sum()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Names of the files in a directory.
    pub(crate) fn files(&self, directory: PathBuf) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Nothing of any attachment is left: no file, no pinned link, no map entry.
    pub(crate) fn assert_empty(&self) {
        assert_eq!(self.files(self.state().join("attachments")), [""; 0]);
        assert_eq!(self.files(self.pin("links")), [""; 0]);
        crate::kernel::assert_maps_are_empty(self);
    }

    /// Two containers exchange datagrams, `count` each way.
    pub(crate) fn exchange(&self, from: usize, to: usize, count: u32) {
        let address = format!("10.88.0.{}", to + 2);
        let receiver = self.containers[to]
            .enter(|| std::net::UdpSocket::bind((address.as_str(), 7000)).unwrap())
            .unwrap();
        let sender = self.containers[from].enter(|| std::net::UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        sender.connect((address.as_str(), 7000)).unwrap();
        for socket in [&sender, &receiver] {
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        }
        for _ in 0..count {
            let mut bytes = [0; 8];
            sender.send(b"question").unwrap();
            let (_, back) = uninterrupted(|| receiver.recv_from(&mut bytes)).unwrap();
            receiver.send_to(b"answer", back).unwrap();
            assert_eq!(uninterrupted(|| sender.recv(&mut bytes)).unwrap(), 6);
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // Asked first, so that it puts back what it has lent itself of the machine: the switch for grace periods.
            kill(Pid::from_raw(process.id().cast_signed()), Signal::SIGTERM).ok();
            let begun = Instant::now();
            while matches!(process.try_wait(), Ok(None)) && begun.elapsed() < PARTING {
                std::thread::sleep(Duration::from_millis(2));
            }
            // It may have ended, which some test has said already.
            drop(process.kill());
            drop(process.wait());
        }
    }
}

/// Waits until `condition` holds.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "in {PATIENCE:?} it never came true that {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn panic_if_ended(log: &str) -> bool {
    assert!(!log.contains("the agent cannot run"), "{log}");
    false
}
