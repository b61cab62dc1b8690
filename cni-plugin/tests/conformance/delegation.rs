//! IPAM plugins as programs: which verbs they are asked, with what, and what becomes of their failures.

use serde_json::{Value, json};

use crate::runtime::Runtime;

/// Puts an IPAM plugin into CNI_PATH that writes down each verb and container, keeps its input, and then does `then`.
fn fake_ipam(runtime: &Runtime, then: &str) -> Value {
    let root = runtime.lab.root().display();
    let noting = "echo \"$CNI_COMMAND $CNI_CONTAINERID\" >> $root/verbs\n/bin/busybox cat > $root/input";
    let mut network = runtime.network_of_ipam(&format!("root={root}\n{noting}\n{then}"));
    // Keys in capitals, as Go reads them, and one of the plugin's own.
    network.as_object_mut().unwrap().remove("ipam");
    network["IPAM"] = json!({ "Type": "fake-ipam", "Own": 1 });
    network
}

fn verbs(runtime: &Runtime) -> String {
    std::fs::read_to_string(runtime.lab.root().join("verbs")).unwrap_or_default().replace('\n', ",")
}

#[test]
fn every_verb_reaches_the_ipam_with_the_whole_configuration() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let answer = r#"[ $CNI_COMMAND = ADD ] && echo '{"CNIVersion":"1.1.0","IPs":[{"Address":"10.1.2.3/24"}],"dns":null}'; exit 0"#;
    let mut network = fake_ipam(&runtime, answer);
    let result = runtime.call("ADD", "c1", &network).ok();
    assert_eq!(result["ips"][0]["address"], "10.1.2.3/24");
    let input = std::fs::read_to_string(runtime.lab.root().join("input")).unwrap();
    assert_eq!(input, network.to_string(), "byte for byte");
    network["prevResult"] = result;
    runtime.call("CHECK", "c1", &network).ok();
    runtime.call("STATUS", "c1", &network).ok();
    runtime.call("GC", "c1", &network).ok();
    network["cni.dev/valid-attachments"] = json!([{ "containerID": "c1", "ifname": "eth0" }]);
    network["cni.dev/attachments"] = network["cni.dev/valid-attachments"].clone();
    runtime.call("GC", "c1", &network).ok();
    runtime.call("DEL", "c1", &network).ok();
    assert_eq!(verbs(&runtime), "ADD c1,CHECK c1,STATUS c1,GC c1,DEL c1,", "a GC without a list is nobody's");
}

/// An answer with one address to ADD, and none to the rest.
const ONE_ADDRESS: &str =
    r#"[ $CNI_COMMAND = ADD ] && echo '{"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}'; exit 0"#;

#[test]
fn an_interface_that_the_ipam_needs_is_attached_once_and_given_its_addresses_where_it_is() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let network = fake_ipam(&runtime, ONE_ADDRESS);
    let result = runtime.call("ADD", "c1", &network).ok();
    assert_eq!(result["ips"][0]["address"], "10.1.2.3/24");
    runtime.agent.with(|books| {
        assert_eq!(books.verbs, ["attach", "address"]);
        let ips = books.ports.values().map(|port| port.ips.clone()).collect::<Vec<_>>();
        assert_eq!(ips, [["10.1.2.3".parse::<std::net::IpAddr>().unwrap()]]);
    });
    assert!(container.command("ip", &["address", "show", "dev", "eth0"]).unwrap().contains("10.1.2.3/24"));
    runtime.call("DEL", "c1", &network).ok();
}

#[test]
fn an_agent_that_cannot_give_addresses_is_said_to_be_older_and_nothing_is_left() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    runtime.agent.with(|books| books.is_older = true);
    let (code, text) = runtime.call("ADD", "c1", &fake_ipam(&runtime, ONE_ADDRESS)).error();
    assert!(code == 11 && text.contains("older than this plugin"), "{code} {text}");
    assert_eq!(verbs(&runtime), "ADD c1,DEL c1,");
    runtime.agent.with(|books| assert_eq!(books.verbs, ["attach", "address", "detach"]));
    runtime.assert_nothing_new(&before);
}

#[test]
fn an_ipam_that_fails_is_told_to_forget_and_its_error_is_passed_on() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    let answer = r#"[ $CNI_COMMAND = ADD ] && { echo '{"code": 11, "msg": "no address today", "details": "try tomorrow"}'; exit 1; } || exit 0"#;
    let (code, text) = runtime.call("ADD", "c1", &fake_ipam(&runtime, answer)).error();
    assert!(code == 11 && text.contains("no address today") && text.contains("try tomorrow"), "{text}");
    assert_eq!(verbs(&runtime), "ADD c1,DEL c1,");
    runtime.assert_nothing_new(&before);
}

#[test]
fn an_ipam_that_talks_nonsense_is_told_to_forget() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    for (answer, expected) in [
        ("echo nonsense", 6),
        ("echo nonsense; exit 3", 6),
        (r#"echo '{"cniVersion":"7.0.0","ips":[]}'"#, 6),
        (r#"echo '{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.300/8"}]}'"#, 6),
        (r#"echo '{"cniVersion":"1.1.0"}'"#, 999),
    ] {
        let (code, text) = runtime
            .call("ADD", "c1", &fake_ipam(&runtime, &format!("[ $CNI_COMMAND = ADD ] || exit 0\n{answer}")))
            .error();
        assert_eq!(code, expected, "{answer}: {text}");
        assert!(verbs(&runtime).ends_with("ADD c1,DEL c1,"));
    }
    runtime.assert_nothing_new(&before);
}

#[test]
fn an_ipam_that_is_not_there_is_named() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    for name in ["no-such-ipam", "../bridge", "."] {
        let network =
            json!({ "cniVersion": "1.1.0", "name": "n1", "type": "bridge", "ipam": { "type": name } });
        let (code, text) = runtime.call("ADD", "c1", &network).error();
        assert!(code == 7 && text.contains(name), "{text}");
        assert_eq!(runtime.call("STATUS", "c1", &network).error().0, 50);
    }
    runtime.assert_nothing_new(&before);
}

#[test]
fn a_failing_ipam_does_not_keep_del_from_its_work() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let add = r#"[ $CNI_COMMAND = ADD ] && echo '{"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}' && exit 0"#;
    let network = fake_ipam(&runtime, &format!("{add}\nexit 1"));
    runtime.call("ADD", "c1", &network).ok();
    assert_eq!(runtime.call("DEL", "c1", &network).error().0, 6);
    assert!(!container.command("ip", &["link"]).unwrap().contains("eth0"));
    runtime.agent.with(|books| assert!(books.ports.is_empty()));
}

#[test]
fn an_interface_plugin_as_ipam_is_refused_and_never_run() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let before = runtime.inventory();
    for name in ["shunt", "shunt-bridge", "bridge", "portmap"] {
        let mut network = runtime.network("n1");
        network["ipam"] = json!({ "type": name });
        let (code, text) = runtime.call("ADD", "c1", &network).error();
        assert!(code == 7 && text.contains("makes interfaces"), "{name}: {code} {text}");
        runtime.call("DEL", "c1", &network).ok();
    }
    runtime.assert_nothing_new(&before);
}
