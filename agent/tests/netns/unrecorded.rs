//! A container whose state record cannot be read is held to its addresses all the same, and the agent says what is wrong.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use shunt_lab::patience;

use crate::guarded::while_speaking;
use crate::restrictions::{assert_talk_to_gateway, stage, tap};
use crate::spoofed::{is_lie, lies};
use crate::stage::Stage;
use crate::wire::{frame, says};

/// What becomes of the first container's record, or of all of them.
type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 5] = [
    ("torn", |record| {
        let whole = fs::read(record).unwrap();
        fs::write(record, &whole[..whole.len() / 2]).unwrap();
    }),
    ("from the future", |record| {
        let mut content: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
        content["format"] = 99.into();
        fs::write(record, content.to_string()).unwrap();
    }),
    ("refused by the file system", |record| {
        fs::remove_file(record).unwrap();
        fs::create_dir(record).unwrap();
    }),
    ("gone", |record| fs::remove_file(record).unwrap()),
    ("gone with the state directory", |record| {
        let directory = record.ancestors().nth(2).unwrap();
        fs::remove_dir_all(directory).unwrap();
    }),
];

/// Exit code and words of a verb of the agent.
fn verb(stage: &Stage, verb: &str) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt-agent"));
    let output = command.args([verb, "--socket"]).arg(stage.node.agent().socket()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

/// The agent names the port and the cure, in its status and its check, and is not healthy.
fn assert_told(stage: &Stage, how: &str, host: &str) {
    let status = stage.node.agent().status().unwrap();
    let is_it = |reason: &&String| reason.contains(host) && reason.contains("stays guarded as it is");
    let reason = status.reasons.iter().find(is_it);
    let reason = reason.unwrap_or_else(|| panic!("{how}: {status:?}"));
    assert!(!status.healthy && reason.contains("make it anew"), "{how}: {reason}");
    // Whatever is wrong with one container, another one can be made.
    assert_eq!(status.obstacles, [""; 0], "{how}");
    let (code, said) = verb(stage, "check");
    assert!(code == 3 && said.contains(host), "{how}: {code} {said}");
}

#[test]
fn a_container_whose_record_cannot_be_read_lies_to_nobody_and_is_named_with_the_cure() {
    for (how, damage) in DAMAGES {
        let mut stage = stage("ipspoofchk");
        let host = stage.node.agent().port("one").unwrap().host_ifname;
        let (liar, to) = (tap(&stage.sandboxes[0]), tap(&stage.sandboxes[1]));
        let lies = lies(&stage, &liar, &to);
        stage.node.agent_mut().kill().unwrap();
        damage(&stage.node.agent().state().join("attachments").join("pods@one@eth0.json"));
        while_speaking(
            || lies.iter().for_each(|lie| liar.send(lie)),
            || {
                // Again: what was found once is found once more.
                for _ in 0..2 {
                    stage.node.restart_agent().unwrap();
                    std::thread::sleep(Duration::from_millis(1200));
                    assert_told(&stage, how, &host);
                    stage.node.agent_mut().kill().unwrap();
                }
                stage.node.restart_agent().unwrap();
            },
        );
        liar.send(&frame(to.mac(), liar.mac(), "the last"));
        let seen = to.until(|frame| says(frame, "the last"));
        assert!(!seen.iter().any(|frame| is_lie(frame, &liar)), "{how}: {seen:02x?}");
        assert_talk_to_gateway(&stage, &stage.sandboxes[0]);
        cure(&mut stage, how);
    }
}

/// The container is deleted and made anew.
fn cure(stage: &mut Stage, how: &str) {
    let open = stage.network.clone();
    let network = open.clone().with("ipspoofchk", true.into());
    // Of a directory that is gone every container was.
    for sandbox in stage.sandboxes.drain(..) {
        sandbox.delete(&stage.node, &network).unwrap();
    }
    let begun = Instant::now();
    loop {
        let status = stage.node.agent().status().unwrap();
        if status.healthy {
            break;
        }
        assert!(begun.elapsed() < patience(Duration::from_secs(10)), "{how}: {status:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(verb(stage, "check").0, 0, "{how}");
    stage.network = network;
    for id in ["one", "two", "three"] {
        stage.add(id);
    }
    stage.network = open;
    stage.assert_talk(0, 1);
    let status = stage.node.agent().status().unwrap();
    assert!(status.healthy && status.attachments == 3, "{how}: {status:?}");
}
