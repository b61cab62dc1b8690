//! Who may ask the agent, and who may have it change something.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};

use crate::rig::{Rig, eventually};

const GROUP: &str = "47110";

/// Runs a query verb as a user who is nobody, in these groups. Whether it was answered, and what it said.
fn ask(rig: &Rig, groups: &str, verb: &str) -> (bool, String) {
    let program = rig.lab.root().join("shunt-agent");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--groups", groups]).arg(program);
    let output = command.arg(verb).arg("--socket").arg(rig.socket()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn members_of_the_group_may_ask_and_others_may_not() {
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
    let mut process = rig.node.enter(|| command.spawn().unwrap()).unwrap();
    eventually("the socket is there", || rig.socket().exists());
    let file = fs::metadata(rig.socket()).unwrap();
    let found = (file.mode() & 0o777, file.gid().to_string());
    eventually("a member is answered", || ask(&rig, GROUP, "status").0);
    let (ports, checked) = (ask(&rig, GROUP, "ports"), ask(&rig, GROUP, "check"));
    let stranger = ask(&rig, "47111", "status");
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(found, (0o660, GROUP.to_owned()));
    assert!(ports.0 && checked.0, "{ports:?} {checked:?}");
    assert!(!stranger.0 && stranger.1.contains("Permission denied"), "{stranger:?}");
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
