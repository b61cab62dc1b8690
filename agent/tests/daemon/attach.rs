//! Attach, Detach, Check and Collect.

use std::time::{Duration, Instant};

use aya::programs::links::{FdLink, PinnedLink};
use shunt_agent_api::{AttachmentKey, BridgePort, ErrorKind, ProgramMode, Reply, Request};

use crate::kernel;
use crate::rig::{Rig, eventually};

#[test]
fn what_is_attached_is_there_and_what_is_detached_is_gone() {
    for mode in ["auto", "tcx", "clsact"] {
        let mut rig = Rig::start(mode);
        let port = rig.container(2);
        let attached = rig.attach(&port).unwrap();
        let names: Vec<_> = attached.programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["from_container", "to_container", "from_host"]);
        rig.check(&port).unwrap();
        assert_eq!(rig.files(rig.state().join("attachments")), ["net@c2@eth0.json"]);
        assert_eq!(rig.detach(&port), Some(port.clone()));
        assert_eq!(rig.detach(&port), None);
        rig.assert_empty();
        assert!(!kernel::filters(&rig, "veth2", "ingress").contains("from_container"), "{mode}");
    }
}

#[test]
fn a_pin_of_another_link_makes_room_for_the_new_one() {
    let mut rig = Rig::start("auto");
    let (first, second) = (rig.container(2), rig.container(3));
    let attached = rig.attach(&first).unwrap();
    if attached.programs.iter().any(|program| program.mode != ProgramMode::Tcx) {
        return;
    }
    let pin = |port: &BridgePort| rig.pin(&format!("links/to_container-{}", port.host.index));
    FdLink::from(PinnedLink::from_pin(pin(&first)).unwrap()).pin(pin(&second)).unwrap();
    assert_eq!(rig.attach(&second).unwrap().programs.len(), attached.programs.len());
    rig.check(&first).unwrap();
    rig.check(&second).unwrap();
    rig.detach(&second);
    assert!(!pin(&second).exists());
    rig.check(&first).unwrap();
}

#[test]
fn a_host_end_is_set_up_where_that_is_asked_for_and_the_answer_means_done() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.ip(&["link", "set", &port.host.name, "down"]);
    let host_end = |rig: &Rig| rig.ip(&["link", "show", "dev", &port.host.name]);
    let container_end =
        |rig: &Rig| rig.containers[0].command("ip", &["link", "show", "dev", "eth0"]).unwrap();
    rig.attach(&port).unwrap();
    assert!(host_end(&rig).contains("state DOWN"), "nobody has asked");
    // Once more for the same port, as by one who has not heard the answer.
    rig.attach_as(&port, true).unwrap();
    for shown in [host_end(&rig), container_end(&rig)] {
        assert!(shown.contains("state UP"), "{shown}");
    }
}

#[test]
fn a_host_end_whose_container_end_stays_down_is_set_up_without_waiting_for_it() {
    let mut rig = Rig::start("auto");
    let mut port = rig.container(2);
    rig.containers[0].command("ip", &["link", "set", "eth0", "down"]).unwrap();
    rig.ip(&["link", "set", &port.host.name, "down"]);
    port.peer_up = false;
    let begun = Instant::now();
    rig.attach_as(&port, true).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(rig.ip(&["link", "show", "up", "dev", &port.host.name]).contains(&port.host.name));
}

#[test]
fn an_attach_whose_ends_do_not_become_operational_is_refused_and_undone() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.containers[0].command("ip", &["link", "set", "eth0", "down"]).unwrap();
    let refusal = rig.attach_as(&port, true).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Unavailable, "{refusal}");
    assert!(refusal.message.contains("did not become operational"), "{refusal}");
    let shown = rig.ip(&["link", "show", "up", "dev", &port.host.name]);
    assert!(shown.trim().is_empty(), "without its programs it forwards: {shown}");
    rig.assert_empty();
}

#[test]
fn an_identical_request_changes_nothing() {
    let mut rig = Rig::start("auto");
    let mut port = rig.container(2);
    let first = rig.attach(&port).unwrap();
    let entry = kernel::port(&rig, port.host.index);
    port.peer_up = false;
    port.netns = Some("/run/netns/elsewhere".into());
    assert_eq!(rig.attach(&port).unwrap(), first);
    assert_eq!(kernel::port(&rig, port.host.index), entry);
    assert_eq!(rig.status().attachments, 1);
}

#[test]
fn the_same_key_with_another_configuration_is_refused() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    let mut other = port.clone();
    other.ips = vec!["10.88.0.99".parse().unwrap()];
    let refusal = rig.attach(&other).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Exists);
    assert!(refusal.message.contains("net/c2/eth0") && refusal.message.contains("addresses"), "{refusal}");
    rig.check(&port).unwrap();
}

#[test]
fn what_another_attachment_has_is_refused_until_its_link_is_gone() {
    let mut rig = Rig::start("auto");
    let (first, second) = (rig.container(2), rig.container(3));
    rig.attach(&first).unwrap();
    let mut thief = second.clone();
    thief.mac = first.mac.clone();
    let refusal = rig.attach(&thief).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Exists);
    assert!(refusal.message.contains(&first.key.to_string()), "{refusal}");
    let mut squatter = first.clone();
    squatter.key.container = "squatter".into();
    assert_eq!(rig.attach(&squatter).unwrap_err().kind, ErrorKind::Exists);

    rig.ip(&["link", "del", &first.host.name]);
    rig.attach(&thief).unwrap();
    rig.check(&thief).unwrap();
}

#[test]
fn a_link_that_is_not_there_is_refused_and_nothing_stays() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    for spoil in [
        |port: &mut BridgePort| port.host.index += 1000,
        |port: &mut BridgePort| port.bridge.name = "br1".into(),
    ] {
        let mut spoiled = port.clone();
        spoil(&mut spoiled);
        assert_eq!(rig.attach(&spoiled).unwrap_err().kind, ErrorKind::NoLink);
    }
    let mut renamed = port;
    renamed.host.name = "veth3".into();
    assert_eq!(rig.attach(&renamed).unwrap_err().kind, ErrorKind::NoLink);
    rig.assert_empty();
}

#[test]
fn an_attach_that_the_kernel_refuses_leaves_nothing_and_no_foreign_filter_is_touched() {
    let mut rig = Rig::start("clsact");
    let port = rig.container(2);
    kernel::add_foreign_filter(&rig, "veth2", "egress", &["prio", "1000", "handle", "0x5348"]);
    let refusal = rig.attach(&port).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Kernel, "{refusal}");
    assert!(refusal.message.contains("to_container"), "{refusal}");
    rig.assert_empty();
    assert!(kernel::filters(&rig, "veth2", "egress").contains("bytecode"));
    assert_eq!(kernel::filters(&rig, "veth2", "ingress"), "");
}

#[test]
fn other_users_filters_and_qdiscs_stay() {
    for mode in ["tcx", "clsact"] {
        let mut rig = Rig::start(mode);
        let port = rig.container(2);
        kernel::add_foreign_filter(&rig, "veth2", "ingress", &["prio", "7"]);
        rig.attach(&port).unwrap();
        rig.check(&port).unwrap();
        rig.detach(&port);
        let left = kernel::filters(&rig, "veth2", "ingress");
        assert!(left.contains("pref 7") && !left.contains("from_container"), "{mode}: {left}");
    }
}

#[test]
fn links_leave_the_ingress_qdisc_to_a_shaper_and_grace_periods_as_they_were() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    assert!(rig.status().programs.iter().all(|program| program.mode == ProgramMode::Tcx));
    // A chained shaper adds it with NLM_F_EXCL, as this does.
    rig.node.command("tc", &["qdisc", "add", "dev", "veth2", "ingress"]).unwrap();
    // Other tests' agents set the machine's switch too, for moments.
    let switch = || std::fs::read_to_string("/sys/kernel/rcu_expedited").unwrap_or_default();
    eventually("no agent has the switch set", || switch().trim() != shunt_agent::rcu::MARK.to_string());
}

#[test]
fn check_names_everything_that_is_wrong() {
    let mut rig = Rig::start_without_repairs();
    let port = rig.container(2);
    let refusal = rig.check(&port).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Altered);
    assert!(refusal.message.contains("not attached"), "{refusal}");

    rig.attach(&port).unwrap();
    kernel::remove_station(&rig, port.bridge.index, kernel::container_mac(2));
    rig.ip(&["link", "set", "veth2", "nomaster"]);
    std::fs::remove_file(rig.state().join("attachments/net@c2@eth0.json")).unwrap();
    let refusal = rig.check(&port).unwrap_err();
    for finding in ["state file", "not a port of br0", "02:00:00:00:00:02 in FDB is missing"] {
        assert!(refusal.message.contains(finding), "{finding}: {refusal}");
    }
}

#[test]
fn collect_forgets_what_is_not_valid_and_never_another_network() {
    let mut rig = Rig::start("auto");
    let (kept, stale, mut other) = (rig.container(2), rig.container(3), rig.container(4));
    other.key.network = "another".into();
    for port in [&kept, &stale, &other] {
        rig.attach(port).unwrap();
    }
    let unheard = AttachmentKey { network: "net".into(), container: "unheard".into(), ifname: "eth0".into() };
    let request = Request::Collect { network: "net".into(), valid: vec![kept.key.clone(), unheard] };
    let Ok(Reply::Collected(collected)) = rig.ask(request) else { panic!("not collected") };
    assert_eq!(collected.removed, std::slice::from_ref(&stale));
    rig.check(&kept).unwrap();
    rig.check(&other).unwrap();
    rig.check(&stale).unwrap_err();
}

#[test]
fn a_detach_with_its_link_deletes_the_link_and_leaves_nothing() {
    for mode in ["tcx", "clsact"] {
        let mut rig = Rig::start(mode);
        let port = rig.container(2);
        rig.attach(&port).unwrap();
        let request = Request::Detach { key: port.key.clone(), link: Some(port.host.clone()) };
        rig.ask(request).unwrap();
        eventually("the link and its pins are gone", || {
            rig.files(rig.pin("links")).is_empty() && !rig.ip(&["-br", "link"]).contains("veth2")
        });
        rig.assert_empty();
    }
}

#[test]
fn what_was_detached_is_attached_again_at_once() {
    let mut rig = Rig::start("auto");
    let port = rig.container(2);
    for _ in 0..20 {
        rig.attach(&port).unwrap();
        rig.detach(&port).unwrap();
    }
    rig.assert_empty();
}
