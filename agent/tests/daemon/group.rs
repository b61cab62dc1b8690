//! Who may ask the agent, and who may have it change something.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Child, Command, Stdio};

use shunt_agent_api::{Client, Reply, Request};

use crate::rig::{Rig, eventually};

const GROUP: &str = "47110";

/// A query verb of a user who is nobody, in these groups.
fn asking(rig: &Rig, groups: &str, verb: &str) -> Command {
    let program = rig.lab.root().join("shunt-agent");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--groups", groups]).arg(program);
    command.args(verb.split(' ')).arg("--socket").arg(rig.socket());
    command
}

/// Runs a query verb as a user who is nobody, in these groups. Whether it was answered, and what it said.
fn ask(rig: &Rig, groups: &str, verb: &str) -> (bool, String) {
    let output = asking(rig, groups, verb).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// An agent whose socket is the group's.
struct Shared {
    rig: Rig,
    process: Child,
}

impl Shared {
    fn start() -> Self {
        let rig = Rig::bare();
        // The lab's directory and the program are to be reached by whoever asks.
        fs::set_permissions(rig.lab.root(), Permissions::from_mode(0o711)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_shunt-agent"), rig.lab.root().join("shunt-agent")).unwrap();
        let agent = rig.command("auto");
        let mut command = Command::new("setpriv");
        command
            .args(["--groups", GROUP])
            .arg(agent.get_program())
            .args(agent.get_args())
            .args(["--group", GROUP]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = rig.node.enter(|| command.spawn().unwrap()).unwrap();
        let shared = Self { rig, process };
        eventually("the socket is there", || shared.rig.socket().exists());
        eventually("a member is answered", || ask(&shared.rig, GROUP, "status").0);
        shared
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

fn end(process: &mut Child) {
    process.kill().ok();
    process.wait().ok();
}

#[test]
fn members_of_the_group_may_ask_and_others_may_not() {
    let shared = Shared::start();
    let rig = &shared.rig;
    let file = fs::metadata(rig.socket()).unwrap();
    let found = (file.mode() & 0o777, file.gid().to_string());
    let (ports, checked) = (ask(rig, GROUP, "ports"), ask(rig, GROUP, "check"));
    let config = ask(rig, GROUP, "config show");
    let stranger = ask(rig, "47111", "status");
    assert_eq!(found, (0o660, GROUP.to_owned()));
    assert!(ports.0 && checked.0, "{ports:?} {checked:?}");
    assert!(config.0 && config.1.contains(GROUP), "{config:?}");
    assert!(!stranger.0 && stranger.1.contains("Permission denied"), "{stranger:?}");
}

#[test]
fn members_of_the_group_take_no_place_of_roots() {
    let shared = Shared::start();
    let rig = &shared.rig;
    let mut listeners: Vec<Child> = (0..40)
        .map(|_| asking(rig, GROUP, "events").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
        .collect();
    let full = || ask(rig, GROUP, "status");
    eventually("members have as many connections as they may", || !full().0);
    let said = full().1;
    let mut client = Client::connect(&rig.socket()).unwrap();
    let roots = (client.ask(Request::Status), client.subscribe());
    listeners.iter_mut().for_each(end);
    assert!(said.contains("too many connections"), "{said}");
    assert!(matches!(roots, (Ok(Reply::Status(_)), Ok(()))), "{roots:?}");
    eventually("who comes later is answered", || ask(rig, GROUP, "status").0);
}

#[test]
fn an_agent_that_is_no_member_of_the_group_says_what_to_do() {
    let rig = Rig::bare();
    for (group, said) in [(GROUP, "SupplementaryGroups=47110"), ("no-such-group", "there is no group")] {
        let mut command = rig.command("auto");
        command.args(["--group", group]);
        assert_eq!(rig.run_to_end(command), 1);
        assert!(rig.log().contains(said), "{}", rig.log());
    }
}
