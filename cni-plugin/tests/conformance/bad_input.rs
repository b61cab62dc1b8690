//! What cannot work: the right code, the reason, and nothing left behind.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_agent_api::ErrorKind;

use crate::runtime::Runtime;

/// Sets a member by a path of keys.
fn with(mut config: Value, path: &str, value: Value) -> Value {
    *path.split('.').fold(&mut config, |object, key| &mut object[key]) = value;
    config
}

#[test]
fn keys_without_a_dataplane_are_refused_by_name() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    let in_vlan = with(runtime.network("n1"), "vlan", json!(10));
    for (key, value) in [("ingressPolicy", json!("same-bridge")), ("hairpinMode", json!(true))] {
        let config = with(in_vlan.clone(), key, value);
        let (code, text) = runtime.call("ADD", "c1", &config).error();
        assert_eq!(code, 100, "{key}: {text}");
        assert!(text.to_lowercase().contains(&key.to_lowercase()), "{key}: {text}");
        assert_eq!(runtime.call("VALIDATE", "c1", &config).error().0, 100, "{key}");
        runtime.call("DEL", "c1", &config).ok();
    }
    let tagged_only = with(runtime.network("n1"), "vlans", json!({ "tagged": [10] }));
    let (code, text) = runtime.call("ADD", "c1", &tagged_only).error();
    assert_eq!(code, 7, "{text}");
    assert!(text.contains("isGateway"), "{text}");
    runtime.assert_nothing_new(&before);
}

#[test]
fn values_out_of_bounds_are_refused_by_name() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    let cases: [(&str, Value); 43] = [
        ("ingressBurst", json!(1000)),
        ("shapedSubnets", json!(["10.0.0.0"])),
        ("unshapedSubnets", json!(["fd00::/129"])),
        ("ingressRate", json!(-1)),
        ("egressRate", json!(1e30)),
        ("mtu", json!(67)),
        ("mtu", json!(65536)),
        ("mtu", json!(-1)),
        ("mtu", json!("1500")),
        ("bridge", json!("a/b")),
        ("bridge", json!("sixteen-letters-")),
        ("bridge", json!(7)),
        ("bridge", json!("br%d")),
        ("bridge", json!("br\u{7}")),
        ("uplink", json!("up%d")),
        ("uplink", json!("sixteen-letters-")),
        ("isGateway", json!("yes")),
        ("vlan", json!(4095)),
        ("vlanTrunk", json!([{ "minID": 5 }])),
        ("vlanTrunk", json!([{ "minID": 9, "maxID": 5 }])),
        ("vlanTrunk", json!([{ "id": 0 }])),
        ("vlans", json!({ "untagged": 5, "tagged": [5] })),
        ("vlans", json!({ "untagged": 4095 })),
        ("vlans", json!({})),
        ("ipMasqBackend", json!("pf")),
        ("nonMasqueradeCIDRs", json!("10.0.0.0/8")),
        ("nonMasqueradeCIDRs", json!(["10.0.0.1"])),
        ("nonMasqueradeCIDRs", json!(["10.0.0.0/33"])),
        ("nonMasqueradeCIDRs", json!(["::ffff:10.0.0.0/104"])),
        ("nonMasqueradeCIDRs", json!(vec!["10.0.0.0/8"; 257])),
        ("ingressPolicy", json!("closed")),
        ("filters", json!("some")),
        ("filters", json!(true)),
        ("bigTcp", json!("on")),
        ("bigTcp", json!(65_535)),
        ("bigTcp", json!(524_281)),
        ("bigTcp", json!({ "bytes": 131_072 })),
        ("stormControl", json!(10)),
        ("stormControl", json!({ "broadcast": 0 })),
        ("stormControl", json!({ "unknown": 10 })),
        ("runtimeConfig", json!({ "mac": "01:00:5e:00:00:01" })),
        ("disableContainerInterface", json!(true)),
        ("uplinkMoveAddress", json!(true)),
    ];
    for (key, value) in cases {
        let config = with(runtime.network("n1"), key, value.clone());
        for verb in ["VALIDATE", "ADD"] {
            let (code, text) = runtime.call(verb, "c1", &config).error();
            assert_eq!(code, 7, "{verb} {key}={value}: {text}");
            assert!(text.contains(key), "{verb} {key}: {text}");
        }
    }
    let both = with(with(runtime.network("n1"), "hairpinMode", json!(true)), "promiscMode", json!(true));
    assert_eq!(runtime.call("ADD", "c1", &both).error().0, 7);
    let range = with(runtime.network("n1"), "ipam.ranges", json!([[{ "subnet": "10.0.0.1/24" }]]));
    let (code, text) = runtime.call("VALIDATE", "c1", &range).error();
    assert!(code == 7 && text.contains("ipam.ranges[0][0]"), "{text}");
    runtime.call("VALIDATE", "c1", &runtime.network("n1")).ok();
    runtime.assert_nothing_new(&before);
}

#[test]
fn namespaces_that_cannot_be_used_are_refused_first() {
    let runtime = Runtime::new();
    let before = runtime.inventory();
    let plain = runtime.lab.root().join("plain");
    std::fs::write(&plain, "").unwrap();
    let pipe = runtime.lab.root().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let network = runtime.network("n1");
    let paths = [runtime.node.path(), Path::new("/nonexistent"), &plain, &pipe, Path::new("/dev/zero")];
    for netns in paths.map(|path| path.display().to_string()) {
        let mut environment = runtime.environment("ADD", "c1");
        environment[2].1 = netns.clone();
        let (code, text) = runtime.call_with(&environment, network.to_string().as_bytes()).error();
        assert_eq!(code, 8, "{netns}: {text}");
    }
    runtime.agent.with(|books| assert!(books.verbs.is_empty(), "the agent was not troubled"));
    runtime.assert_nothing_new(&before);
}

#[test]
fn a_pipe_or_a_device_in_a_files_place_keeps_nobody_waiting() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let pipe = runtime.lab.root().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let before = runtime.inventory();
    let begun = Instant::now();
    for path in [&pipe, Path::new("/dev/zero")] {
        let network = with(runtime.network("n1"), "ipam.resolvConf", json!(path));
        let (code, text) = runtime.call("ADD", "c1", &network).error();
        assert!(code == 5 && text.contains("no regular file"), "{code} {text}");
    }
    runtime.call("ADD", "c1", &runtime.network("n1")).ok();
    for set in ["0", "1"] {
        let last = runtime.leases().join(format!("n1/last_reserved_ip.{set}"));
        std::fs::remove_file(&last).unwrap();
        nix::unistd::mkfifo(&last, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    runtime.call("DEL", "c1", &runtime.network("n1")).ok();
    runtime.call("ADD", "c1", &runtime.network("n1")).error();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    std::fs::remove_dir_all(runtime.leases()).unwrap();
    runtime.call("DEINIT", "", &runtime.network("n1")).ok();
    runtime.assert_nothing_new(&before);
}

#[test]
fn an_interface_that_exists_is_left_alone() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    container.command("ip", &["link", "add", "eth0", "type", "bridge"]).unwrap();
    let before = runtime.inventory();
    let (code, text) = runtime.call("ADD", "c1", &runtime.network("n1")).error();
    assert!(code == 999 && text.contains("`eth0` already exists"), "{text}");
    runtime.assert_nothing_new(&before);
    runtime.call("DEL", "c1", &runtime.network("n1")).ok();
    assert!(container.command("ip", &["link"]).unwrap().contains("eth0"), "another's interface stays");
}

#[test]
fn an_unreachable_agent_means_try_again_later() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    let network = with(runtime.network("n1"), "agentSocket", json!("/nonexistent/agent.sock"));
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert!(code == 11 && text.contains("/nonexistent/agent.sock"), "{text}");
    assert_eq!(runtime.call("INIT", "c1", &network).error().0, 11);
    runtime.call("DEL", "c1", &network).ok();
    runtime.assert_nothing_new(&before);
}

#[test]
fn every_refusal_of_the_agent_is_undone_and_has_its_code() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let before = runtime.inventory();
    for (kind, expected) in [
        (ErrorKind::Exists, 106),
        (ErrorKind::Kernel, 5),
        (ErrorKind::Unsupported, 105),
        (ErrorKind::NoLink, 11),
        (ErrorKind::Uplink, 104),
        (ErrorKind::Claim, 107),
        (ErrorKind::Malformed, 6),
    ] {
        runtime.agent.with(|books| books.refuse_attach = Some(kind));
        let (code, text) = runtime.call("ADD", "c1", &runtime.network("n1")).error();
        assert_eq!(code, expected, "{kind:?}: {text}");
        runtime.assert_nothing_new(&before);
        assert!(!container.command("ip", &["link"]).unwrap().contains("eth0"));
    }
}

#[test]
fn a_bridge_that_cannot_serve_is_left_as_it_was() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    runtime.node.command("ip", &["link", "add", "br0", "type", "bridge"]).unwrap();
    runtime.node.command("ip", &["address", "add", "10.99.0.1/24", "dev", "br0"]).unwrap();
    runtime.node.command("ip", &["link", "set", "br0", "up"]).unwrap();
    runtime.node.command("ip", &["link", "add", "other", "type", "veth", "peer", "name", "rehto"]).unwrap();
    let before = runtime.inventory();
    let (code, text) = runtime.call("ADD", "c1", &runtime.network("n1")).error();
    assert!(code == 999 && text.contains("10.99.0.1/24"), "{text}");
    let (code, text) =
        runtime.call("ADD", "c1", &with(runtime.network("n1"), "bridge", json!("other"))).error();
    assert!(code == 999 && text.contains("`other` already exists but is not a bridge"), "{text}");
    runtime.assert_nothing_new(&before);
    runtime.call("ADD", "c1", &with(runtime.network("n1"), "forceAddress", json!(true))).ok();
    assert!(!runtime.inventory().has("address br0 10.99.0.1/24"));
}

#[test]
fn a_route_that_the_kernel_refuses_undoes_everything() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let before = runtime.inventory();
    let routes = json!([{ "dst": "192.0.2.0/24", "gw": "203.0.113.1" }]);
    let (code, text) = runtime.call("ADD", "c1", &with(runtime.network("n1"), "ipam.routes", routes)).error();
    assert!(code == 999 && text.contains("add route 192.0.2.0/24 via 203.0.113.1"), "{text}");
    runtime.assert_nothing_new(&before);
    assert!(!container.command("ip", &["link"]).unwrap().contains("eth0"));
}

#[test]
fn an_attachment_that_exists_elsewhere_survives_a_second_add() {
    let runtime = Runtime::new();
    let _containers = ["c1", "other"].map(|id| runtime.container(id));
    let layer2 = json!({ "cniVersion": "1.1.0", "name": "n1", "type": "shunt", "bridge": "br0" });
    runtime.call("ADD", "c1", &layer2).ok();
    runtime.agent.with(|books| books.refuse_attach = Some(ErrorKind::Exists));
    let mut environment = runtime.environment("ADD", "c1");
    environment[2].1 = runtime.lab.root().join("other.netns").display().to_string();
    assert_eq!(runtime.call_with(&environment, layer2.to_string().as_bytes()).error().0, 106);
    runtime
        .agent
        .with(|books| assert_eq!(books.ports.len(), 1, "the first one's port is still in the books"));
}

#[test]
fn an_agent_that_is_not_there_is_named_and_nothing_begun() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let before = runtime.inventory();
    // The kernel numbers a namespace's links one after the other.
    let next_index = || {
        let make = "ip link add probe type bridge && ip -o link show probe && ip link delete probe";
        let shown = runtime.node.command("sh", &["-c", make]).unwrap();
        shown.split(':').next().unwrap().parse::<u32>().unwrap()
    };
    let left = runtime.lab.root().join("left.sock");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    let sockets = [(Path::new("/nonexistent/agent.sock"), "No such file"), (&left, "refused")];
    for (socket, why) in sockets {
        let network = with(runtime.network("n1"), "agentSocket", json!(socket));
        let index = next_index();
        let (code, text) = runtime.call("ADD", "c1", &network).error();
        assert!(code == 11 && text.contains("cannot be reached") && text.contains(why), "{code} {text}");
        assert_eq!(next_index(), index + 1, "a link was made, and is gone again");
        runtime.assert_nothing_new(&before);
        assert!(!container.command("ip", &["link"]).unwrap().contains("eth0"));
    }
}

/// The IPAM is asked beside the rest of an ADD, but not before it is seen whose namespace it is, and that the name is free.
#[test]
fn no_address_is_taken_for_an_add_that_cannot_begin() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    container.command("ip", &["link", "add", "eth0", "type", "bridge"]).unwrap();
    let mut own = runtime.environment("ADD", "c1");
    own[2].1 = runtime.node.path().to_str().unwrap().to_owned();
    let network = runtime.network("n1").to_string();
    for (environment, why) in [(runtime.environment("ADD", "c1"), "eth0"), (own, "should not be the same")] {
        let (_, text) = runtime.call_with(&environment, network.as_bytes()).error();
        assert!(text.contains(why), "{text}");
        assert!(!runtime.leases().join("n1").exists(), "{why}");
    }
    assert_eq!(runtime.agent.with(|books| books.verbs.clone()), Vec::<String>::new());
}

#[test]
fn an_agent_that_dies_over_an_attach_means_try_again_later() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let before = runtime.inventory();
    let socket = runtime.lab.root().join("dying.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let dying = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let (code, text) =
        runtime.call("ADD", "c1", &with(runtime.network("n1"), "agentSocket", json!(socket))).error();
    dying.join().unwrap();
    assert_eq!(code, 11, "{text}");
    runtime.assert_nothing_new(&before);
    assert!(!container.command("ip", &["link"]).unwrap().contains("eth0"));
}

#[test]
fn a_bridge_without_a_free_port_has_its_own_code() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    runtime.node.command("ip", &["link", "add", "br0", "type", "bridge"]).unwrap();
    let batch = runtime.lab.root().join("ports");
    // Both ends of each pair are ports: 1022 of them, and one whose other end is none.
    let pairs = (0..511)
        .map(|n| format!("link add a{n} master br0 type veth peer name b{n}\nlink set b{n} master br0\n"));
    let last = "link add a511 master br0 type veth peer name b511\n".to_owned();
    std::fs::write(&batch, pairs.chain([last]).collect::<String>()).unwrap();
    runtime.node.command("ip", &["-batch", &batch.display().to_string()]).unwrap();
    let mut network = runtime.network("n1");
    network["isDefaultGateway"] = json!(false);
    runtime.node.command("ip", &["link", "set", "br0", "up"]).unwrap();
    let before = runtime.inventory();
    let (code, text) = runtime.call("ADD", "c1", &network).error();
    assert!(code == 103 && text.contains("`br0` takes no more ports"), "{text}");
    runtime.assert_nothing_new(&before);
}
