//! The uplinks' capacity at a Kubernetes API server, whatever the server does.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_agent::capacity::Quantity;

use crate::api_server::ApiServer;
use crate::api_store::{Mood, NODE, Store};
use crate::rig::{Rig, eventually};

const UPLINK: &str = "[uplinks.eth1]\negress = '10G'\ningress = '2G'";

/// A rig with an API server that is so, and an agent that is to publish there.
fn publishing(options: &str, mood: Mood) -> (Rig, ApiServer) {
    let mut rig = Rig::bare();
    rig.ip(&["link", "add", "eth1", "type", "veth", "peer", "name", "peer1"]);
    let server = ApiServer::start(&rig);
    server.store().mood = mood;
    run(&mut rig, options);
    (rig, server)
}

fn run(rig: &mut Rig, options: &str) {
    let [config, kubeconfig] = ["config.toml", "kubeconfig"].map(|name| rig.lab.root().join(name));
    fs::write(&kubeconfig, ApiServer::kubeconfig().to_string()).unwrap();
    let text = format!(
        "{UPLINK}\n[kubernetes]\nkubeconfig = '{}'\nnode = '{NODE}'\ndra = false\n{options}",
        kubeconfig.display()
    );
    fs::write(&config, text).unwrap();
    rig.run_with("auto", &["--config", config.to_str().unwrap()]);
}

/// What the slice says can be handed out: egress and ingress of every device.
fn published(store: &Store) -> Option<Vec<[u64; 2]>> {
    let bits = |capacity: &Value| capacity["value"].as_str().unwrap().parse::<Quantity>().unwrap().0;
    let device =
        |device: &Value| ["egressBandwidth", "ingressBandwidth"].map(|way| bits(&device["capacity"][way]));
    store.slice().map(|slice| slice["spec"]["devices"].as_array().unwrap().iter().map(device).collect())
}

const WHOLE: [u64; 2] = [10_000_000_000, 2_000_000_000];

fn until_published(rig: &Rig, server: &ApiServer, devices: &[[u64; 2]]) {
    eventually("it is published", || {
        let is_so = published(&server.store()).as_deref() == Some(devices);
        assert!(is_so || !rig.log().contains("panicked"), "{}", rig.log());
        is_so
    });
}

/// The remark of the status, once there is one that says this.
fn until_remarked(rig: &Rig, said: &str) {
    eventually(said, || rig.status().warnings.iter().any(|warning| warning.contains(said)));
}

fn until_unremarked(rig: &Rig) {
    eventually("nothing is wrong any more", || rig.status().warnings.is_empty());
}

fn asked(server: &ApiServer, begins: &str) -> usize {
    server.store().asked.iter().filter(|asked| asked.starts_with(begins)).count()
}

#[test]
fn the_slice_is_published_once_and_known_again_in_the_servers_own_words() {
    let (mut rig, server) = publishing("", Mood::Well);
    until_published(&rig, &server, &[WHOLE]);
    let slice = server.store().slice().unwrap().clone();
    assert_eq!(slice["metadata"]["name"], "node-1-bandwidth.shunt.dev");
    assert_eq!(slice["spec"]["devices"][0]["capacity"]["ingressBandwidth"]["value"], "1953125Ki");
    // The next agent finds it as it wants it.
    rig.kill();
    server.store().asked.clear();
    run(&mut rig, "");
    eventually("the next agent watches", || asked(&server, "GET") >= 2);
    assert_eq!(asked(&server, "P"), 0);
    assert_eq!(server.store().slice(), Some(&slice));
    assert!(rig.status().healthy && rig.status().warnings.is_empty());
}

#[test]
fn a_slice_that_the_kubelet_deletes_is_published_again() {
    let (rig, server) = publishing("", Mood::Well);
    until_published(&rig, &server, &[WHOLE]);
    for _ in 0..2 {
        server.store().delete_slices();
        until_published(&rig, &server, &[WHOLE]);
    }
}

#[test]
fn a_slice_that_somebody_else_writes_is_written_again_with_a_newer_generation() {
    let (rig, server) = publishing("", Mood::Well);
    until_published(&rig, &server, &[WHOLE]);
    server.store().conflicts = 1;
    server
        .store()
        .alter(|slice| slice["spec"]["devices"][0]["capacity"]["egressBandwidth"]["value"] = json!("1k"));
    until_published(&rig, &server, &[WHOLE]);
    assert_eq!(server.store().slice().unwrap()["spec"]["pool"]["generation"], 2);
    until_unremarked(&rig);
}

#[test]
fn where_somebody_elses_slice_has_the_name_the_nodes_gets_another_one_and_keeps_it() {
    let mut rig = Rig::bare();
    rig.ip(&["link", "add", "eth1", "type", "veth", "peer", "name", "peer1"]);
    let server = ApiServer::start(&rig);
    let others = |name: &str, driver: &str, node: &str| {
        json!({ "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": { "name": name },
            "spec": { "driver": driver, "nodeName": node, "pool": { "name": node, "generation": 1,
                "resourceSliceCount": 1 }, "devices": [] } })
    };
    let foreign = [
        others("node-1-bandwidth.shunt.dev", "bandwidth.shunt.dev", "another"),
        others("node-1-2-bandwidth.shunt.dev", "gpu.example.com", NODE),
    ];
    for slice in foreign {
        server.store().create_slice(slice);
    }
    run(&mut rig, "");
    until_published(&rig, &server, &[WHOLE]);
    let name = || server.store().slice().unwrap()["metadata"]["name"].clone();
    assert_eq!(name(), "node-1-3-bandwidth.shunt.dev");
    assert!(rig.log().contains("somebody else's slice has this name"), "{}", rig.log());
    // It is known by its driver and node: by the next agent, and when it is written again.
    rig.kill();
    server.store().asked.clear();
    run(&mut rig, "");
    eventually("the next agent watches", || asked(&server, "GET") >= 2);
    server
        .store()
        .alter(|slice| slice["spec"]["devices"][0]["capacity"]["egressBandwidth"]["value"] = json!("1k"));
    until_published(&rig, &server, &[WHOLE]);
    assert_eq!((name(), asked(&server, "POST")), (json!("node-1-3-bandwidth.shunt.dev"), 0));
    until_unremarked(&rig);
}

#[test]
fn what_changes_on_the_node_changes_in_the_slice() {
    let (rig, server) = publishing("", Mood::Well);
    until_published(&rig, &server, &[WHOLE]);
    let begun = Instant::now();
    rig.ip(&["link", "delete", "eth1"]);
    until_published(&rig, &server, &[]);
    println!("published after {:?}", begun.elapsed());
    rig.ip(&["link", "add", "eth1", "type", "bridge"]);
    until_published(&rig, &server, &[WHOLE]);
}

#[test]
fn fields_that_the_server_drops_are_told_and_not_written_again_and_again() {
    let (rig, server) = publishing("", Mood::DropsFields);
    until_remarked(&rig, "has not kept devices[0].allowMultipleAllocations");
    let writes = || asked(&server, "P");
    assert_eq!(writes(), 1);
    server.store().end_watches();
    eventually("it is watched again", || asked(&server, "GET") >= 4);
    std::thread::sleep(Duration::from_millis(500));
    let writes = writes();
    assert!(writes <= 2, "{writes} writes");
    assert!(rig.status().healthy);
}

#[test]
fn a_server_that_answers_nonsense_is_told_of_and_nobody_waits_for_it() {
    for nonsense in ["", "<html>Bad Gateway</html>", "{\"items\":7}", "[]", "{\"kind\":\"List\",\"items\":[{"]
    {
        let (mut rig, server) = publishing("", Mood::Nonsense(nonsense));
        until_remarked(&rig, "the capacity is not published");
        let port = rig.container(2);
        rig.attach(&port).unwrap();
        rig.check(&port).unwrap();
        assert!(rig.status().healthy, "{:?}", rig.status());
        let asked = asked(&server, "");
        assert!(asked <= 4, "{asked} requests");
    }
}

#[test]
fn an_answer_without_an_end_is_read_so_far_and_no_further() {
    let (rig, _server) = publishing("", Mood::Endless);
    until_remarked(&rig, "the capacity is not published");
    let status = fs::read_to_string(format!("/proc/{}/status", rig.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(most < 200_000, "{most} kB");
    assert!(rig.status().healthy);
}

#[test]
fn a_server_that_forbids_and_goes_away_is_published_to_when_it_comes_back() {
    let (mut rig, mut server) = publishing("", Mood::Forbids);
    until_remarked(&rig, "this node may not do that (403)");
    server.go_away();
    until_remarked(&rig, "onnection refused");
    let port = rig.container(2);
    rig.attach(&port).unwrap();
    rig.detach(&port);
    assert!(rig.status().healthy, "{:?}", rig.status());
    server.store().mood = Mood::Well;
    server.come_back(&rig);
    until_published(&rig, &server, &[WHOLE]);
    until_unremarked(&rig);
}

#[test]
fn a_server_without_slices_has_the_nodes_capacity_patched() {
    let (rig, server) = publishing("", Mood::HasNoSlices);
    let said = |name: &str| server.store().capacity(name).map(str::to_owned);
    let egress = || said("shunt.dev/egress-mbps");
    eventually("it is patched", || egress().as_deref() == Some("10k"));
    assert_eq!(said("shunt.dev/ingress-mbps").as_deref(), Some("2k"));
    rig.ip(&["link", "delete", "eth1"]);
    eventually("it is patched again", || egress().as_deref() == Some("0"));
    // The uplink is all that is wrong.
    let reasons = rig.status().reasons;
    assert!(reasons.iter().all(|reason| reason.contains("eth1")), "{reasons:?}");
}

#[test]
fn a_kubeconfig_or_a_name_that_is_none_is_a_clear_error() {
    let mut rig = Rig::bare();
    let config = rig.lab.root().join("config.toml");
    for (text, code, fault) in [
        ("[kubernetes]\nnode = 'Node_1'", 1, "`Node_1` is no node's name"),
        ("[kubernetes]\npublish = 'everything'", 2, "everything"),
        ("[kubernetes]\nkubecfg = '/x'", 2, "unknown field `kubecfg`"),
    ] {
        fs::write(&config, text).unwrap();
        let mut command = rig.command("auto");
        command.arg("--config").arg(&config);
        assert_eq!(
            (rig.run_to_end(command), rig.log().contains(fault)),
            (code, true),
            "{text}: {}",
            rig.log()
        );
    }
    fs::remove_file(rig.lab.root().join("log")).unwrap();
    // What may come later is waited for.
    fs::write(&config, "[kubernetes]\nkubeconfig = '/nowhere'\nnode = 'node-1'\ndra = false").unwrap();
    rig.run_with("auto", &["--config", config.to_str().unwrap()]);
    until_remarked(&rig, "/nowhere");
    assert!(rig.status().healthy);
}
