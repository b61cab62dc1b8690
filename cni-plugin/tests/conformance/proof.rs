//! What a DEL, a GC and an undo take is this attachment's, and provably so.

use serde_json::{Value, json};
use shunt_agent_api::ErrorKind;
use shunt_lab::Namespace;

use crate::runtime::Runtime;

fn link(namespace: &Namespace, name: &str) -> Value {
    let told = namespace.command("ip", &["-j", "link", "show", "dev", name]).unwrap();
    serde_json::from_str::<Value>(&told).unwrap()[0].clone()
}

fn index(namespace: &Namespace, name: &str) -> u64 {
    link(namespace, name)["ifindex"].as_u64().unwrap()
}

#[test]
fn a_container_that_chooses_indexes_has_no_other_containers_interface_deleted() {
    let runtime = Runtime::new();
    // The kernel counts in each namespace from 1.
    runtime.node.command("ip", &["link", "add", "first", "type", "bridge"]).unwrap();
    for kind in ["bridge", "shunt"] {
        let [victim, attacker] = ["c1", "c2"].map(|id| runtime.container(id));
        let mut network = runtime.network("n1");
        network["type"] = json!(kind);
        runtime.call("ADD", "c1", &network).ok();
        let (inner, host) = (index(&victim, "eth0"), link(&victim, "eth0")["link_index"].as_u64().unwrap());
        assert_ne!(inner, host, "both ends of the attacker's are in one namespace");
        let [inner, host] = [inner, host].map(|index| index.to_string());
        let veth =
            ["link", "add", "eth0", "index", &inner, "type", "veth", "peer", "name", "x", "index", &host];
        attacker.command("ip", &veth).unwrap();
        let chosen = ["eth0", "x"].map(|name| index(&attacker, name).to_string());
        assert_eq!(chosen, [inner, host]);
        runtime.call("DEL", "c2", &network).ok();
        assert!(victim.command("ip", &["link"]).unwrap().contains("eth0"), "{kind}");
        runtime.call("DEL", "c1", &network).ok();
        assert!(!victim.command("ip", &["link"]).unwrap().contains("eth0"), "{kind}");
    }
}

#[test]
fn an_interface_that_somebody_else_made_and_left_down_stays() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    runtime.node.command("ip", &["link", "add", "theirs", "type", "veth", "peer", "name", "inner"]).unwrap();
    let netns = container.path().display().to_string();
    runtime.node.command("nsenter", &[&format!("--net={netns}"), "true"]).unwrap();
    runtime.node.command("ip", &["link", "set", "inner", "netns", &netns]).unwrap();
    container.command("ip", &["link", "set", "inner", "name", "eth0"]).unwrap();
    runtime.call("DEL", "c1", &runtime.network("n1")).ok();
    assert!(container.command("ip", &["link"]).unwrap().contains("eth0"));
    assert!(runtime.inventory().has("link theirs"));
}

#[test]
fn a_failed_add_takes_its_gateway_off_an_operators_bridge_that_has_ports() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    for command in [
        "link add br0 type bridge",
        "link add port type veth peer name trop",
        "link set port master br0",
        "link set br0 up",
    ] {
        runtime.node.command("ip", &command.split(' ').collect::<Vec<_>>()).unwrap();
    }
    runtime.node.command("sh", &["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).unwrap();
    let before = runtime.inventory();
    runtime.agent.with(|books| books.refuse_attach = Some(ErrorKind::Unsupported));
    assert_eq!(runtime.call("ADD", "c1", &runtime.network("n1")).error().0, 105);
    runtime.assert_nothing_new(&before);
}

#[test]
fn an_agent_that_stops_in_the_middle_of_an_undo_leaves_nothing_behind() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    runtime.agent.with(|books| {
        books.refuse_attach = Some(ErrorKind::Unsupported);
        books.refuse_detach = Some(ErrorKind::Unavailable);
    });
    let (code, text) = runtime.call("ADD", "c1", &runtime.network("n1")).error();
    assert_eq!(code, 105, "{text}");
    assert!(!runtime.inventory().has("link veth"));
}

#[test]
fn a_call_that_is_killed_leaves_no_bridge_that_is_nobodys() {
    let runtime = Runtime::new();
    let network = runtime.network("n1");
    runtime.kill("INIT", &network, |delay| {
        let links = runtime.node.command("ip", &["-j", "link"]).unwrap();
        let links: Value = serde_json::from_str(&links).unwrap();
        let bridge = links.as_array().unwrap().iter().find(|link| link["ifname"] == "br0");
        assert!(bridge.is_none_or(|bridge| bridge["ifalias"] == "shunt"), "after {delay} µs: {bridge:?}");
        runtime.call("DEINIT", "", &network).ok();
        assert!(!runtime.inventory().has("link br0"), "after {delay} µs");
    });
}

#[test]
fn an_address_is_given_back_once_the_interface_is_gone() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let root = runtime.lab.root().display().to_string();
    let netns = container.path().display().to_string();
    let script = format!(
        "cat > /dev/null\nif [ $CNI_COMMAND = ADD ]; then echo '{{\"cniVersion\":\"1.1.0\",\"ips\":[{{\"address\":\"10.1.2.3/24\"}}]}}'\n\
         elif nsenter --net={netns} ip link show dev eth0 > /dev/null 2>&1; then echo there > {root}/seen\nelse echo gone > {root}/seen; fi"
    );
    let mut network = runtime.network_of_ipam(&script);
    runtime.call("ADD", "c1", &network).ok();
    // Without an agent, which would have deleted it before the program runs.
    network["agentSocket"] = json!("/nonexistent/agent.sock");
    runtime.call("DEL", "c1", &network).ok();
    assert_eq!(std::fs::read_to_string(format!("{root}/seen")).unwrap().trim(), "gone");
}

#[test]
fn names_of_two_hundred_characters_work_as_with_the_reference() {
    let runtime = Runtime::new();
    let containers = ["c1", "c2"].map(|id| runtime.container(id));
    let [name, id] = ["n", "c"].map(|letter| letter.repeat(200));
    let mut network = runtime.network(&name);
    network["cniVersion"] = json!("1.0.0");
    let call = |verb: &str, container: &str, network: &Value| {
        let mut environment = runtime.environment(verb, container);
        environment[1].1 = format!("{}{container}", &id[2..]);
        runtime.call_with(&environment, network.to_string().as_bytes())
    };
    for kind in ["bridge", "shunt"] {
        network["type"] = json!(kind);
        let mut checked = network.clone();
        checked["prevResult"] = call("ADD", "c1", &network).ok();
        call("ADD", "c2", &network).ok();
        call("CHECK", "c1", &checked).ok();
        call("DEL", "c1", &network).ok();
        assert!(!containers[0].command("ip", &["link"]).unwrap().contains("eth0"));
        assert!(containers[1].command("ip", &["link"]).unwrap().contains("eth0"));
        let mut listed = network.clone();
        listed["cniVersion"] = json!("1.1.0");
        listed["cni.dev/valid-attachments"] =
            json!([{ "containerID": format!("{}c2", &id[2..]), "ifname": "eth0" }]);
        call("GC", "c1", &listed).ok();
        assert!(containers[1].command("ip", &["link"]).unwrap().contains("eth0"), "it is listed");
        listed["cni.dev/valid-attachments"] = json!([]);
        call("GC", "c1", &listed).ok();
        assert!(!containers[1].command("ip", &["link"]).unwrap().contains("eth0"), "it is not");
    }
}
