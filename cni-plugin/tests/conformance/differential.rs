//! The same configuration into the reference bridge plugin and into ours: the same result, and the same kernel.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shunt_lab::Namespace;

use crate::runtime::{Outcome, Runtime};

/// Everything that a run leaves, without what is random.
struct Traces {
    result: Value,
    node: Vec<Value>,
    container: Vec<Value>,
    routes: Vec<String>,
    settings: Vec<String>,
}

impl Traces {
    /// Panics at the first thing that differs, and shows that alone.
    fn agree_with(&self, theirs: &Self, what: &str) {
        assert_eq!(self.result, theirs.result, "result: {what}");
        for (place, ours, theirs) in
            [("node", &self.node, &theirs.node), ("container", &self.container, &theirs.container)]
        {
            assert_eq!(ours.len(), theirs.len(), "links of the {place}: {what}: {ours:?} / {theirs:?}");
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert_eq!(ours, theirs, "a link of the {place}: {what}");
            }
        }
        assert_eq!(self.routes, theirs.routes, "routes: {what}");
        assert_eq!(self.settings, theirs.settings, "settings: {what}");
    }
}

fn only(object: &Value, keys: &[&str]) -> Value {
    keys.iter().map(|key| ((*key).to_owned(), object[key].clone())).collect::<serde_json::Map<_, _>>().into()
}

/// Links and their addresses, as far as they are chosen and not random.
fn links(namespace: &Namespace) -> Vec<Value> {
    let text = namespace.command("ip", &["-json", "-details", "address", "show"]).unwrap();
    let mut links: Vec<Value> = serde_json::from_str(&text).unwrap();
    // The kernel lists them by their indexes, which are chosen at random or counted up.
    links.sort_by_key(|link| link["ifname"].as_str().unwrap().to_owned());
    let described = links.iter().map(|link| {
        let keys = ["flags", "mtu", "master", "operstate", "link_type", "promiscuity"];
        let mut described = only(link, &keys);
        let name = link["ifname"].as_str().unwrap();
        described["name"] = json!(if name.starts_with("veth") { "veth" } else { name });
        described["kind"] = link["linkinfo"]["info_kind"].clone();
        if described["kind"] == "bridge" {
            // The kernel is in no hurry to say that a bridge's carrier has come or gone.
            described["operstate"] = Value::Null;
            described["flags"]
                .as_array_mut()
                .unwrap()
                .retain(|flag| flag != "NO-CARRIER" && flag != "LOWER_UP");
        }
        let port = &link["linkinfo"]["info_slave_data"];
        described["port"] = only(port, &["hairpin", "isolated", "learning", "flood", "state", "guard"]);
        described["addresses"] = link["addr_info"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|address| address["scope"] != "link")
            .map(|address| only(address, &["family", "local", "prefixlen", "broadcast", "scope"]))
            .collect();
        described
    });
    described.collect()
}

fn routes(namespace: &Namespace) -> Vec<String> {
    let families = [["-4", "route"], ["-6", "route"]].map(|family| namespace.command("ip", &family).unwrap());
    families.iter().flat_map(|text| text.lines()).map(|line| line.trim().to_owned()).collect()
}

/// The links of both and the container's routes, once the kernel has told itself of the new carrier: it may take its time
/// (a second between two rounds of net/core/link_watch.c), and operational states and IPv6's own routes wait for that.
fn settled(node: &Namespace, container: &Namespace) -> (Vec<Value>, Vec<Value>, Vec<String>) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let (on_node, inside, routes) = (links(node), links(container), routes(container));
        let veths = on_node.iter().chain(&inside).filter(|link| link["kind"] == "veth");
        let up = veths.clone().all(|link| link["operstate"] == "UP");
        let routed = routes.iter().any(|route| route.starts_with("fe80::/64"))
            && !routes.iter().any(|route| route.contains("linkdown"));
        if (up && routed) || Instant::now() > deadline {
            return (on_node, inside, routes);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn settings(namespace: &Namespace, names: &[String]) -> Vec<String> {
    let read = |name: &String| {
        let value = std::fs::read_to_string(format!("/proc/sys/net/{name}")).unwrap();
        let parts: Vec<_> =
            name.split('/').map(|part| if part.starts_with("veth") { "veth" } else { part }).collect();
        format!("{} = {}", parts.join("/"), value.trim())
    };
    namespace.enter(|| names.iter().map(read).collect()).unwrap()
}

fn normalised(mut result: Value) -> Value {
    for interface in result["interfaces"].as_array_mut().into_iter().flatten() {
        if interface["name"].as_str().is_some_and(|name| name.starts_with("veth")) {
            interface["name"] = json!("veth");
        }
        for random in ["mac", "sandbox"] {
            if interface.get(random).is_some() {
                interface[random] = json!("present");
            }
        }
    }
    result
}

/// The reference plugin forbids it; ours takes IPv6 off the host's end as a whole.
fn believes_routers(node: &Namespace, host: &str) -> bool {
    let names = ["accept_ra", "disable_ipv6"].map(|name| format!("ipv6/conf/{host}/{name}"));
    let found = settings(node, &names);
    !found.iter().any(|setting| setting.ends_with("accept_ra = 0") || setting.ends_with("disable_ipv6 = 1"))
}

fn traces(network: &Value, call: impl Fn(&Runtime, &str, &Value) -> Outcome) -> (Traces, Traces) {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    let mut network = network.clone();
    network["ipam"]["dataDir"] = json!(runtime.leases());
    let look = |result: Value| {
        let host = result["interfaces"][1]["name"].as_str().unwrap_or("lo").to_owned();
        let inner = result["interfaces"][2]["name"].as_str().unwrap_or("lo").to_owned();
        let on_node = ["ipv4/ip_forward".to_owned(), "ipv6/conf/all/forwarding".to_owned()];
        let hosts = ["ipv6/conf/br0/accept_ra".to_owned()];
        let inside = [
            "ipv4/conf/?/arp_notify",
            "ipv6/conf/?/accept_dad",
            "ipv6/conf/?/enhanced_dad",
            "ipv6/conf/?/disable_ipv6",
        ];
        let inside: Vec<String> = inside.iter().map(|name| name.replace('?', &inner)).collect();
        let mut all = settings(&runtime.node, &on_node);
        all.extend(settings(&runtime.node, &hosts));
        all.extend(settings(&container, &inside));
        all.push(format!("the host's end believes routers = {}", believes_routers(&runtime.node, &host)));
        let (node, container, routes) = settled(&runtime.node, &container);
        Traces { result: normalised(result), node, container, routes, settings: all }
    };
    let result = call(&runtime, "ADD", &network).ok();
    let after_add = look(result.clone());
    network["prevResult"] = result;
    call(&runtime, "CHECK", &network).ok();
    call(&runtime, "DEL", &network).ok();
    call(&runtime, "DEL", &network).ok();
    // Whatever is gone has no settings any more.
    let after_del = Traces {
        result: Value::Null,
        node: links(&runtime.node),
        container: links(&container),
        routes: Vec::new(),
        settings: Vec::new(),
    };
    (after_add, after_del)
}

#[test]
fn the_reference_bridge_and_ours_leave_the_same_traces() {
    let ranges = json!({ "type": "host-local", "ranges": [[{ "subnet": "10.88.0.0/16" }]] });
    let dual = json!({ "type": "host-local", "ranges": [[{ "subnet": "10.88.0.0/16" }], [{ "subnet": "fd88::/64" }]],
        "routes": [{ "dst": "192.0.2.0/24", "gw": "10.88.0.1" }, { "dst": "2001:db8::/32", "gw": "fd88::1" }] });
    let variants = [
        ("a gateway", json!({ "isGateway": true, "ipam": ranges })),
        ("a default gateway", json!({ "isDefaultGateway": true, "ipam": ranges })),
        ("both families", json!({ "isDefaultGateway": true, "ipam": dual })),
        ("duplicates looked for", json!({ "enabledad": true, "isDefaultGateway": true, "ipam": dual })),
        ("no gateway", json!({ "ipam": ranges })),
        (
            "a small MTU and hairpin",
            json!({ "mtu": 1400, "hairpinMode": true, "isGateway": true, "ipam": ranges }),
        ),
        ("promiscuous", json!({ "promiscMode": true, "isGateway": true, "ipam": ranges })),
        ("a resolver", json!({ "isGateway": true, "dns": { "nameservers": ["192.0.2.1"] }, "ipam": ranges })),
    ];
    for version in ["0.4.0", "1.0.0"] {
        for (name, keys) in &variants {
            let mut network =
                json!({ "cniVersion": version, "name": "diff", "type": "bridge", "bridge": "br0" });
            network.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
            let (theirs, theirs_gone) = traces(&network, |runtime, verb, config| {
                runtime.call_reference("bridge", verb, "c1", config)
            });
            let (ours, ours_gone) =
                traces(&network, |runtime, verb, config| runtime.call(verb, "c1", config));
            ours.agree_with(&theirs, &format!("{name}, {version}"));
            ours_gone.agree_with(&theirs_gone, &format!("{name}, {version}, after DEL"));
        }
    }
}

#[test]
fn faults_in_the_environment_get_the_reference_plugins_code() {
    let runtime = Runtime::new();
    let network = json!({ "cniVersion": "1.0.0", "name": "diff", "type": "bridge" });
    let change = |environment: &mut Vec<(&'static str, String)>, name: &str, value: &str| {
        environment.retain(|(other, _)| *other != name);
        environment.extend(
            ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS"]
                .iter()
                .filter(|known| **known == name)
                .map(|known| (*known, value.to_owned())),
        );
    };
    let cases = [
        ("CNI_COMMAND", "FLY", network.to_string()),
        ("CNI_CONTAINERID", "", network.to_string()),
        ("CNI_CONTAINERID", "a/b", network.to_string()),
        ("CNI_IFNAME", "a/b", network.to_string()),
        ("CNI_NETNS", "", network.to_string()),
        ("CNI_COMMAND", "ADD", "{".to_owned()),
        ("CNI_COMMAND", "ADD", r#"{"cniVersion":"1.0.0"}"#.to_owned()),
        ("CNI_COMMAND", "ADD", r#"{"cniVersion":"8.0.0","name":"n"}"#.to_owned()),
    ];
    for (name, value, input) in cases {
        let mut environment = runtime.environment("ADD", "c1");
        change(&mut environment, name, value);
        let ours = runtime.call_with(&environment, input.as_bytes()).error();
        let program = std::path::Path::new(crate::runtime::REFERENCE).join("bridge");
        let theirs = runtime.exec(&program, &environment, input.as_bytes()).error();
        assert_eq!(ours.0, theirs.0, "{name}={value} {input}: {} / {}", ours.1, theirs.1);
    }
}
