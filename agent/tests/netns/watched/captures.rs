//! What `capture` writes.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use serde_json::{Value, json};

use super::{NOBODY, Watcher, checked, ids, is_ours, ours, wait};
use crate::stage::Stage;
use crate::wire::frame;

/// Has the agent know whose pod a container is.
fn name_pod(stage: &mut Stage, container: &str, namespace: &str, name: &str) {
    stage.node.agent_mut().kill().unwrap();
    let attachments = stage.node.agent().state().join("attachments");
    let path = attachments.join(format!("pods@{container}@eth0.json"));
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["port"]["pod"] = json!({ "namespace": namespace, "name": name, "uid": "1b4e28ba-2fa1" });
    fs::write(&path, record.to_string()).unwrap();
    stage.node.restart_agent().unwrap();
}

/// Packets of a file: interface, comment, bytes and losses.
pub(super) fn packets(path: &Path) -> Vec<(String, String, Vec<u8>, u64)> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        let (block, state) = block.unwrap();
        let Block::EnhancedPacket(packet) = block else { continue };
        let (mut comment, mut lost) = (String::new(), 0);
        for option in &packet.options {
            match option {
                EnhancedPacketOption::Common(CommonOption::Comment(text)) => comment = text.to_string(),
                EnhancedPacketOption::DropCount(count) => lost = *count,
                _ => {}
            }
        }
        let interface = format!("{:?}", state.interfaces()[packet.interface_id as usize].options[0]);
        packets.push((interface, comment, packet.data.to_vec(), lost));
    }
    packets
}

#[test]
fn a_capture_has_every_byte_of_what_the_fast_path_delivers_and_what_became_of_it() {
    let (mut stage, wires) = checked();
    name_pod(&mut stage, "two", "team", "shop");
    let plain = ids(&stage);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packets.pcapng");
    let name = file.to_str().unwrap();
    let watcher = Watcher::begin(&stage, &["capture", "-w", name, "--pod", "team/shop", "--for", "60s"]);
    wait(&stage, &plain, true);
    let [from, to] = [wires[0].mac(), wires[1].mac()];
    let sent: Vec<_> = (0..20)
        .map(|number| frame(to, from, &format!("packet {number} {}", "x".repeat(number * 60))))
        .collect();
    sent.iter().for_each(|frame| wires[0].send(frame));
    wires[0].send(&frame([2, 0, 0, 0, 0, 9], NOBODY, "not two's"));
    assert!(ours(wires[1].until_silence()) == sent, "they are delivered");
    watcher.interrupt();
    let (_, said) = watcher.end();
    assert!(said.contains(" captured; 0 packets were over the rate and left out, 0 were lost"), "{said}");
    let mut captured = packets(&file);
    // The containers' own stacks may talk meanwhile.
    captured.retain(|packet| is_ours(&packet.2));
    assert!(captured.iter().map(|packet| &packet.2).eq(&sent), "{} packets", captured.len());
    let [one, two] = ["one", "two"].map(|name| stage.node.agent().port(name).unwrap().host_ifname);
    for (interface, comment, _, lost) in &captured {
        assert!(interface.contains(&one), "{interface}");
        let wanted = format!("from_container on {one} [pods/one]: peer to {two}");
        assert_eq!((comment, *lost), (&wanted, 0));
    }
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    if let Ok(output) = Command::new("tcpdump").args(["-n", "-r", name]).output() {
        let lines =
            String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains("88b5")).count();
        assert!(output.status.success() && lines == 20, "{output:?}");
    }
    wait(&stage, &plain, false);
}

#[test]
fn what_is_left_to_the_kernel_is_captured_where_that_is_asked_for() {
    let stage = Stage::set();
    let plain = ids(&stage);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packets.pcapng");
    let name = file.to_str().unwrap();
    let address = stage.sandboxes[0].addresses()[0].to_string();
    let arguments = ["capture", "-w", name, "--fate", "passed", "--address", &address, "--snaplen", "64"];
    let ended = ["--for", "60s", "--count", "3", "--json"];
    let watcher = Watcher::begin(&stage, &[&arguments[..], &ended].concat());
    wait(&stage, &plain, true);
    crate::restrictions::assert_talk_to_gateway(&stage, &stage.sandboxes[0]);
    let (summary, _) = watcher.end();
    assert_eq!((&summary[0]["file"], &summary[0]["packets"]), (&json!(name), &json!(3)));
    let captured = packets(&file);
    assert_eq!(captured.len(), 3);
    for (_, comment, bytes, _) in &captured {
        assert!(bytes.len() <= 64, "{}", bytes.len());
        assert!(comment.contains(": pass "), "{comment}");
    }
    wait(&stage, &plain, false);
}
