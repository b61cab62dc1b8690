//! What the agent may do, by the kernel's own word.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use shunt_agent::privileges::KEPT;

use crate::rig::Rig;

fn status(rig: &Rig, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", rig.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.unwrap_or_else(|| panic!("no {field} in {status}")).trim().to_owned()
}

#[test]
fn the_agent_keeps_the_capabilities_that_it_names_and_can_get_no_others() {
    let mut rig = Rig::start("auto");
    let kept = KEPT.iter().fold(0, |mask, (capability, _)| mask | capability.bitmask());
    for set in ["CapEff", "CapPrm", "CapBnd"] {
        let has = u64::from_str_radix(&status(&rig, set), 16).unwrap();
        assert_eq!(has, kept, "{set}: {has:x}");
    }
    for set in ["CapInh", "CapAmb"] {
        assert_eq!(u64::from_str_radix(&status(&rig, set), 16).unwrap(), 0, "{set}");
    }
    assert_eq!(status(&rig, "NoNewPrivs"), "1");
    // With no more than that, it does its work.
    let (one, two) = (rig.container(2), rig.container(3));
    rig.attach(&one).unwrap();
    rig.attach(&two).unwrap();
    rig.exchange(0, 1, 3);
    rig.detach(&one).unwrap();
}

#[test]
fn the_service_unit_grants_what_the_agent_keeps() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dist/shunt-agent.service");
    let unit = fs::read_to_string(path).unwrap();
    let granted = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let kept: BTreeSet<_> = KEPT.iter().map(|(capability, _)| capability.to_string()).collect();
    assert_eq!(granted.split(' ').map(str::to_owned).collect::<BTreeSet<_>>(), kept);
}

#[test]
fn the_daemon_set_grants_what_the_agent_keeps_and_drops_all_else() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/kubernetes/shunt.yaml");
    let manifest = fs::read_to_string(path).unwrap();
    let (_, agent) = manifest.split_once("- name: agent\n").unwrap();
    assert!(agent.contains("drop: [ALL]") && agent.contains("privileged: false"), "{agent}");
    let granted =
        agent.lines().find_map(|line| line.trim().strip_prefix("add: [")?.strip_suffix(']')).unwrap();
    let kept: BTreeSet<_> = KEPT.iter().map(|(capability, _)| capability.to_string()).collect();
    let granted: BTreeSet<_> = granted.split(", ").map(|name| format!("CAP_{name}")).collect();
    assert_eq!(granted, kept);
}
