//! `shunt-agent uninstall` under living containers: their traffic goes on, and nothing of shunt's is left.

use std::collections::BTreeMap;
use std::fs;

use nix::mount::{MsFlags, mount};
use serde_json::json;
use shunt_lab::{Protocol, Sandbox};
use shunt_netlink::Connection;
use shunt_netlink::link::{LargestPackets, links};

use crate::drop_in::{DropIn, assert_masqueraded, container_rules, host_port, portmap, text};
use crate::portmap::HOST_PORT;
use crate::stage::{PORT, Stage, listen};

/// What `uninstall` answers where the agent's file cannot be used.
const USAGE: i32 = 2;

/// What it answers where something is in the way.
const IN_THE_WAY: i32 = 3;

/// By each other, by the host port from everywhere, and by who is outside.
fn assert_all_served(stage: &Stage, server: &Sandbox, client: &Sandbox) {
    stage.assert_talk(server, client);
    for namespace in [&stage.outside, stage.node.namespace(), client.namespace()] {
        stage.assert_served(namespace, server, host_port(HOST_PORT));
    }
    assert_masqueraded(stage, client.namespace());
}

/// What the node's interfaces are handed, by name.
fn packet_sizes(stage: &Stage) -> BTreeMap<String, LargestPackets> {
    let listed = stage.node.namespace().enter(|| Connection::open().unwrap().list(links()).unwrap()).unwrap();
    listed.into_iter().map(|link| (link.name, link.largest_packets)).collect()
}

/// Whether interfaces that were there `before` are handed what they were.
fn are_as_before(stage: &Stage, before: &BTreeMap<String, LargestPackets>) -> bool {
    packet_sizes(stage).into_iter().all(|(name, now)| before.get(&name).is_none_or(|then| *then == now))
}

fn goes_on_without_shunt(is_running: bool) {
    let Some(mut stage) = Stage::set_by("big_tcp = 'auto'") else { return };
    stage.outside.command("ip", &["route", "del", "default"]).unwrap();
    let drop_in = DropIn::before(&stage).install();
    let plain = drop_in.network(&stage);
    let mapped = plain.clone().then(portmap(&stage, HOST_PORT, PORT));
    let before = packet_sizes(&stage);
    let server = stage.start(&mapped, "server");
    let client = stage.start(&plain, "client");
    assert!(!are_as_before(&stage, &before), "the way out takes larger packets");
    assert_all_served(&stage, &server, &client);
    stage.assert_fast(&server, &client);
    assert_eq!(container_rules(&stage), Vec::<String>::new());
    if !is_running {
        stage.node.agent_mut().kill().unwrap();
    }

    let echo = listen(&server);
    let talks = [Protocol::Tcp, Protocol::Udp].map(|protocol| client.talk_to(protocol, &echo).unwrap());
    let output = std::thread::scope(|scope| {
        let uninstalling = scope.spawn(|| drop_in.uninstall(&stage, &[]));
        for mut talk in talks {
            let ended = || uninstalling.is_finished();
            while !ended() {
                talk.chat(5, 500).expect("a conversation between containers goes on");
            }
            talk.chat(5, 500).expect("it goes on afterwards");
        }
        uninstalling.join().unwrap()
    });
    drop(echo);
    assert!(output.status.success(), "{}\n{}", text(&output), stage.node.agent().log_tail());
    drop_in.assert_gone(&stage);
    assert!(are_as_before(&stage, &before));
    assert_all_served(&stage, &server, &client);
    assert_eq!(notes(&stage), 2, "for whoever deletes the containers");
    // The plugins that were there before take down what they did not make.
    stage.remove(&mapped, &server);
    stage.remove(&plain, &client);
    assert_eq!(container_rules(&stage), Vec::<String>::new());
    assert_eq!(pairs(&stage), 0);
}

/// How many interfaces of containers there are.
fn pairs(stage: &Stage) -> usize {
    let links = stage.node.namespace().command("ip", &["-oneline", "link", "show", "type", "veth"]).unwrap();
    links.lines().filter(|line| !line.contains("uplink")).count()
}

/// How many attachments are noted to have rules of other plugins.
fn notes(stage: &Stage) -> usize {
    let directory = stage.node.agent().socket().with_added_extension("handed-over");
    fs::read_dir(directory).map_or(0, Iterator::count)
}

#[test]
fn what_was_handed_over_goes_with_the_container_that_a_later_installation_deletes() {
    let Some(mut stage) = Stage::set() else { return };
    let drop_in = DropIn::before(&stage).install_beside();
    let ranges = json!([[{ "subnet": "10.77.0.0/24" }]]);
    let ipam = json!({ "type": "shunt-ipam", "dataDir": stage.node.leases(), "ranges": ranges });
    let plain = drop_in.network(&stage).with("type", json!("shunt")).with("ipam", ipam);
    let ports = json!([{ "hostPort": HOST_PORT, "containerPort": PORT, "protocol": "tcp" }]);
    let mapped = plain.clone().with("runtimeConfig", json!({ "portMappings": ports }));
    let mapped = mapped.with("capabilities", json!({ "portMappings": true }));
    let sandboxes = ["deleted", "collected", "lost"].map(|id| {
        let network = if id == "deleted" { &mapped } else { &plain };
        stage.start(network, id)
    });
    let [deleted, collected, lost] = sandboxes;
    let output = drop_in.uninstall(&stage, &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(notes(&stage), 3);
    let rules = container_rules(&stage);
    assert!(rules.iter().any(|rule| rule.contains("CNI-DN-")), "{rules:?}");

    let drop_in = drop_in.install_beside();
    stage.node.restart_agent().unwrap();
    // Its namespace is there, and by its own configuration no other plugin is asked.
    stage.remove(&mapped, &deleted);
    assert_eq!(notes(&stage), 2);
    let rules = container_rules(&stage);
    assert!(!rules.iter().any(|rule| rule.contains("CNI-DN-") || rule.contains("deleted")), "{rules:?}");
    assert!(rules.iter().any(|rule| rule.contains("collected")), "{rules:?}");
    // A DEL never comes, and the namespace is gone.
    drop(collected);
    plain.collect(stage.node.namespace(), &[lost.container()], lost.container()).unwrap();
    assert_eq!(notes(&stage), 1);
    let rules = container_rules(&stage);
    assert!(!rules.iter().any(|rule| rule.contains("collected")), "{rules:?}");
    // Nor a GC: the next uninstallation has the plugins remove them.
    drop(lost);
    let begun = std::time::Instant::now();
    while pairs(&stage) > 0 {
        assert!(begun.elapsed().as_secs() < 20, "the kernel takes a namespace down in its own time");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let output = drop_in.uninstall(&stage, &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(notes(&stage), 0);
    assert_eq!(container_rules(&stage), Vec::<String>::new());
}

#[test]
fn containers_of_a_node_whose_agent_runs_go_on_without_shunt() {
    goes_on_without_shunt(true);
}

#[test]
fn containers_of_a_node_whose_agent_is_dead_go_on_without_shunt() {
    goes_on_without_shunt(false);
}

#[test]
fn what_would_end_is_named_and_refused_and_nothing_is_changed_without_force() {
    let Some(stage) = Stage::set() else { return };
    let drop_in = DropIn::before(&stage).install();
    drop_in.lose("portmap");
    drop_in.configure("shunt");
    let plain = drop_in.network(&stage);
    let restricted = plain.clone().with("macspoofchk", json!(true));
    let one = stage.start(&restricted, "one");
    let two = stage.start(&plain.clone().then(portmap(&stage, HOST_PORT, PORT)), "two");
    let three = stage.start(&plain, "three");
    for more in [&["--check"][..], &[]] {
        let refused = drop_in.uninstall(&stage, more);
        assert_eq!(refused.status.code(), Some(IN_THE_WAY), "{}", text(&refused));
        let said = text(&refused);
        for named in
            ["pods/one/eth0: macspoofchk", "pods/two/eth0: host ports", "portmap.orig", "the plugin shunt"]
        {
            assert!(said.contains(named), "{named} in {said}");
        }
        assert!(!said.contains("pods/three"), "{said}");
    }
    assert_eq!(stage.node.agent().status().unwrap().attachments, 3);
    assert_eq!(container_rules(&stage), Vec::<String>::new());
    stage.assert_fast(&two, &three);

    let forced = drop_in.uninstall(&stage, &["--force"]);
    assert!(forced.status.success(), "{}", text(&forced));
    assert!(text(&forced).contains("lost: pods/one/eth0: macspoofchk"), "{}", text(&forced));
    drop_in.assert_gone_but(&stage, &["portmap"]);
    stage.assert_talk(&one, &two);
    stage.assert_talk(&two, &three);
    // What was given up is in nobody's way a second time.
    drop_in.install_agent();
    for more in [&["--check"][..], &[]] {
        let again = drop_in.uninstall(&stage, more);
        let named = "10-pods.conf: names the plugin shunt, which is gone";
        assert!(again.status.success() && text(&again).contains(named), "{}", text(&again));
    }
}

#[test]
fn a_container_that_ended_while_no_agent_ran_is_in_nobodys_way() {
    let Some(mut stage) = Stage::set() else { return };
    let drop_in = DropIn::before(&stage).install();
    drop_in.lose("portmap");
    let mapped = drop_in.network(&stage).then(portmap(&stage, HOST_PORT, PORT));
    let gone = stage.start(&mapped, "gone");
    stage.node.agent_mut().kill().unwrap();
    assert_eq!(drop_in.uninstall(&stage, &["--check"]).status.code(), Some(IN_THE_WAY));
    drop(gone);
    // The kernel takes a namespace down in its own time.
    let begun = std::time::Instant::now();
    while !drop_in.uninstall(&stage, &["--check"]).status.success() {
        assert!(begun.elapsed().as_secs() < 20, "{}", text(&drop_in.uninstall(&stage, &["--check"])));
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let output = drop_in.uninstall(&stage, &[]);
    assert!(output.status.success(), "{}", text(&output));
    drop_in.assert_gone_but(&stage, &["portmap"]);
}

#[test]
fn what_is_others_in_the_agents_directories_stays_and_is_named() {
    let Some(stage) = Stage::set() else { return };
    let drop_in = DropIn::before(&stage).install();
    let one = stage.start(&drop_in.network(&stage), "one");
    let (state, bpffs) = (stage.node.agent().state(), stage.node.agent().bpffs());
    let [mounted, pins] = [state.join("networks"), bpffs.join("cilium")];
    for directory in [&mounted, &pins] {
        fs::create_dir(directory).unwrap();
    }
    mount(Some("tmpfs"), &mounted, Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
    // By its name shunt's, but not on shunt's file system.
    let files = [state.join("dump.sql"), mounted.join("pods.conflist")];
    for file in &files {
        fs::write(file, "another's").unwrap();
    }
    let stay = || files.iter().chain([&mounted, &pins]).all(|path| path.exists());

    let output = drop_in.uninstall(&stage, &[]);
    assert!(output.status.success(), "{}", text(&output));
    for path in [&files[0], &mounted, &pins] {
        assert!(text(&output).contains(path.to_str().unwrap()), "{} in {}", path.display(), text(&output));
    }
    assert!(stay() && !state.join("attachments").exists() && !state.join("lock").exists());
    assert_eq!(fs::read_dir(bpffs).unwrap().count(), 1, "no pin of shunt's is left");
    // Nothing of shunt's is in them any more.
    let drop_in = drop_in.install_beside();
    let output = drop_in.uninstall(&stage, &[]);
    assert!(output.status.success() && stay(), "{}", text(&output));
    drop(one);
}

#[test]
fn a_file_that_no_agent_can_use_is_named_and_given_up_with_force() {
    let Some(stage) = Stage::set() else { return };
    let drop_in = DropIn::before(&stage).install();
    let file = stage.lab.root().join("broken.toml");
    let cluster = "[cluster]\nenabled = true\ncni_bin_dir = '/nonexistent/cni'\nconflist = '/nonexistent/10'";
    fs::write(&file, format!("admision = 'warn'\n{cluster}")).unwrap();
    let file = file.to_str().unwrap();
    for more in [&["--check", "--config", file][..], &["--config", file]] {
        let refused = drop_in.uninstall(&stage, more);
        let said = text(&refused);
        assert_eq!(refused.status.code(), Some(USAGE), "{said}");
        assert!(said.contains(file) && said.contains("`admission`") && said.contains("--force"), "{said}");
    }
    assert!(stage.node.agent().status().is_ok(), "nothing is changed");
    let forced = drop_in.uninstall(&stage, &["--force", "--config", file]);
    let said = text(&forced);
    assert!(forced.status.success() && said.contains(file) && said.contains("the defaults"), "{said}");
    assert!(said.contains("may name others"), "{said}");
    assert!(said.contains("/nonexistent/cni"), "what can be used of it is: {said}");
    drop_in.assert_gone(&stage);
    // It keeps nothing from being asked for once nothing is there.
    drop_in.install_agent();
    let again = drop_in.uninstall(&stage, &["--config", file]);
    assert!(again.status.success(), "{}", text(&again));
}
