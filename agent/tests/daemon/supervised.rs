//! Whoever starts the agent: what it tells a service manager, and that neither a log that nobody reads nor a signal ends it.

use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use shunt_agent_api::{BridgePort, Client, Request};

use crate::rig::{Rig, eventually};

/// Lines: more than a pipe holds, and more than wait in the agent.
const MANY: usize = 20_000;

#[test]
fn a_log_that_nobody_reads_delays_nothing_and_its_lost_lines_are_counted() {
    let mut rig = Rig::bare();
    let mut command = rig.command("auto");
    command.stderr(Stdio::piped());
    rig.run_command(command);
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    // Each is refused, with a line.
    let wrong = BridgePort { mtu: 0, ..port.clone() };
    let mut client = Client::connect(&rig.socket()).unwrap();
    for _ in 0..MANY {
        client.ask(Request::Attach { port: wrong.clone(), set_up: false }).unwrap_err();
    }
    let warnings = rig.status().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("log lines were lost")), "{warnings:?}");
    rig.detach(&port).unwrap();
    rig.attach(&port).unwrap();
}

#[test]
fn a_log_that_is_closed_ends_nothing() {
    let mut rig = Rig::bare();
    let mut command = rig.command("auto");
    command.env("RUST_LOG", "debug").stderr(Stdio::piped());
    rig.run_command(command);
    drop(rig.take_stderr());
    let port = rig.container(2);
    for _ in 0..50 {
        rig.attach(&port).unwrap();
        rig.detach(&port).unwrap();
    }
}

#[test]
fn a_terminal_that_hangs_up_ends_nothing() {
    let rig = Rig::start("auto");
    rig.signal(Signal::SIGHUP);
    eventually("it is said that nothing is done", || rig.log().contains("SIGHUP does nothing"));
    rig.ask(Request::Status).unwrap();
}

#[test]
fn a_service_manager_hears_when_the_agent_serves_and_that_it_goes_on() {
    let mut rig = Rig::bare();
    let path = rig.lab.root().join("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut command = rig.command("auto");
    command.env("NOTIFY_SOCKET", &path);
    rig.run_command(command);
    let hear = || {
        let mut bytes = [0; 256];
        let length = shunt_lab::uninterrupted(|| manager.recv(&mut bytes)).unwrap();
        String::from_utf8_lossy(&bytes[..length]).trim().to_owned()
    };
    assert_eq!(hear(), "READY=1");
    assert_eq!([hear(), hear()], ["WATCHDOG=1", "WATCHDOG=1"]);
    rig.signal(Signal::SIGTERM);
    while hear() != "STOPPING=1" {}
}
