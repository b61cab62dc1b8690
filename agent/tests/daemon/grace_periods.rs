//! The kernel's switch for expedited grace periods, and what `status` says of it.

use std::fs;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use shunt_agent::rcu::MARK;

use crate::rig::{Rig, eventually};

const SWITCH: &str = "/sys/kernel/rcu_expedited";

/// One test writes an operator's value; another asserts what is reported without one.
static OPERATOR: Mutex<()> = Mutex::new(());

fn switch() -> String {
    fs::read_to_string(SWITCH).unwrap().trim().to_owned()
}

/// A node with an agent that has this in its configuration.
fn configured(grace_periods: &str) -> Rig {
    let mut rig = Rig::bare();
    let file = rig.lab.root().join("agent.toml");
    fs::write(&file, format!("grace_periods = {grace_periods:?}")).unwrap();
    rig.run_with("auto", &["--config", file.to_str().unwrap()]);
    rig
}

fn status_text(rig: &Rig) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    let output = command.args(["status", "--socket"]).arg(rig.socket()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn status_says_whether_grace_periods_are_expedited_and_why() {
    let _alone = OPERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    let rig = configured("normal");
    let report = rig.status().grace_periods.unwrap();
    assert_eq!((report.mode.as_str(), report.expedited), ("normal", false));
    let text = status_text(&rig);
    assert!(text.contains("grace periods: normal (normal: configured)"), "{text}");
    let rig = configured("expedite");
    let report = rig.status().grace_periods.unwrap();
    assert_eq!((report.mode.as_str(), report.expedited), ("expedite", true));
    assert!(status_text(&rig).contains("grace periods: expedited around each attach and detach (expedite"));
    assert_eq!(Rig::start("auto").status().grace_periods.unwrap().mode, "auto");
}

/// Other tests' agents have the switch set at times: none of them keeps it so.
#[test]
fn a_killed_agents_value_is_reset_by_the_next_agent() {
    let _alone = OPERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    if switch() == "0" {
        fs::write(SWITCH, MARK.to_string()).unwrap();
    }
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    rig.detach(&port);
    eventually("the switch is not set by an agent", || switch() != MARK.to_string());
}

/// Gives the machine its value back.
struct Operators(String);

impl Drop for Operators {
    fn drop(&mut self) {
        fs::write(SWITCH, &self.0).unwrap();
    }
}

#[test]
fn an_operators_value_stays() {
    let _alone = OPERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    let mut rig = configured("expedite");
    let port = rig.container(2);
    let before = if switch() == MARK.to_string() { "0".to_owned() } else { switch() };
    let _restored = Operators(before);
    fs::write(SWITCH, "2").unwrap();
    rig.attach(&port).unwrap();
    assert_eq!(switch(), "2");
    let report = rig.status().grace_periods.unwrap();
    assert!(report.expedited && report.reason.contains("the operator has set"), "{report:?}");
    rig.detach(&port);
    rig.kill();
    rig.run("auto");
    assert_eq!(switch(), "2");
}
