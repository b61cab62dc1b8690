//! Limits: every spelling of the keys reaches the agent, and changes of them do.

use serde_json::{Value, json};
use shunt_agent_api::{Bandwidth, BridgePort, Rate};

use crate::runtime::Runtime;

const SLOW: Rate = Rate { rate: 8_000_000, burst: 800_000 };

/// The one port's limits, as the agent has them.
fn limits(runtime: &Runtime) -> Bandwidth {
    runtime.agent.with(|books| books.ports.values().next().unwrap().bandwidth.clone())
}

fn then(config: &Value, previous: &Value) -> Value {
    let mut config = config.clone();
    config["prevResult"] = previous.clone();
    config
}

#[test]
fn limits_in_any_spelling_reach_the_agent() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let both = Bandwidth { ingress: Some(SLOW), egress: Some(SLOW), ..Bandwidth::default() };
    let keys = [
        json!({ "ingressRate": SLOW.rate, "ingressBurst": SLOW.burst, "egressRate": SLOW.rate, "egressBurst": SLOW.burst }),
        json!({ "IngressRate": SLOW.rate, "INGRESSBURST": SLOW.burst, "egressrate": SLOW.rate, "EgressBurst": SLOW.burst }),
    ];
    let configs = keys.iter().flat_map(|keys| {
        let runtimes = ["bandwidth", "bandWidth"].map(|name| json!({ "RuntimeConfig": { name: keys } }));
        std::iter::once(keys.clone()).chain(runtimes)
    });
    for more in configs {
        let mut config = runtime.network("n1");
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let result = runtime.call("ADD", "c1", &config).ok();
        assert_eq!(limits(&runtime), both, "{more}");
        runtime.call("CHECK", "c1", &then(&config, &result)).ok();
        runtime.call("DEL", "c1", &config).ok();
    }
}

#[test]
fn an_update_in_place_changes_the_limits() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut config = runtime.network("n1");
    config["updateExisting"] = json!(true);
    runtime.call("ADD", "c1", &config).ok();
    assert_eq!(limits(&runtime), Bandwidth::default());
    config["egressRate"] = json!(SLOW.rate);
    config["egressBurst"] = json!(SLOW.burst);
    runtime.call("ADD", "c1", &config).ok();
    assert_eq!(limits(&runtime), Bandwidth { egress: Some(SLOW), ..Bandwidth::default() });
    runtime.call("DEL", "c1", &config).ok();
}

#[test]
fn bandwidth_behind_shunt_limits_what_shunt_attached() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let network = runtime.network("n1");
    let result = runtime.call("ADD", "c1", &network).ok();
    for kind in ["bandwidth", "shunt-bandwidth"] {
        let mut bandwidth = json!({ "cniVersion": "1.1.0", "name": "n1", "type": kind, "ingressRate": SLOW.rate,
            "ingressBurst": SLOW.burst, "agentSocket": network["agentSocket"] });
        assert_eq!(runtime.call("ADD", "c1", &then(&bandwidth, &result)).ok(), result, "{kind}");
        assert_eq!(limits(&runtime).ingress, Some(SLOW), "{kind}");
        runtime.call("CHECK", "c1", &then(&bandwidth, &result)).ok();
        runtime
            .agent
            .with(|books| books.ports.values_mut().for_each(|port| port.bandwidth = Bandwidth::default()));
        runtime.call("FINALIZE", "c1", &then(&bandwidth, &result)).ok();
        assert_eq!(limits(&runtime).ingress, Some(SLOW), "{kind}: put right");
        runtime.call("DEL", "c1", &bandwidth).ok();
        assert_eq!(limits(&runtime), Bandwidth::default(), "{kind}");
        bandwidth["ingressBurst"] = json!(0);
        assert_eq!(runtime.call("ADD", "c1", &then(&bandwidth, &result)).error().0, 7, "{kind}");
    }
    runtime.call("DEL", "c1", &network).ok();
}

#[test]
fn bandwidth_behind_a_reference_bridge_hands_its_port_to_the_agent() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut first = runtime.network("n1");
    first["cniVersion"] = json!("1.0.0");
    first["type"] = json!("bridge");
    first["ipam"]["type"] = json!("host-local");
    let made = runtime.call_reference("bridge", "ADD", "c1", &first).ok();
    let bandwidth = json!({ "cniVersion": "1.0.0", "name": "n1", "type": "bandwidth", "egressRate": SLOW.rate,
        "egressBurst": SLOW.burst, "agentSocket": first["agentSocket"] });
    assert_eq!(runtime.call("ADD", "c1", &then(&bandwidth, &made)).ok(), made);
    assert_eq!(limits(&runtime), Bandwidth { egress: Some(SLOW), ..Bandwidth::default() });
    runtime.call("CHECK", "c1", &then(&bandwidth, &made)).ok();
    // What it had can be handed out again at once, whatever becomes of the interface.
    runtime.call("DEL", "c1", &bandwidth).ok();
    assert_eq!(limits(&runtime), Bandwidth::default());
    runtime.call_reference("bridge", "DEL", "c1", &first).ok();
}

#[test]
fn masquerading_and_restrictions_of_the_network_are_no_matter_of_a_bandwidth_behind_it() {
    let runtime = Runtime::new();
    let _container = runtime.container("c1");
    let mut network = runtime.network("n1");
    for key in ["ipMasq", "portIsolation", "macspoofchk", "updateExisting"] {
        network[key] = json!(true);
    }
    let result = runtime.call("ADD", "c1", &network).ok();
    runtime.call("CHECK", "c1", &then(&network, &result)).ok();
    let bandwidth = json!({ "cniVersion": "1.1.0", "name": "n1", "type": "bandwidth", "ingressRate": SLOW.rate,
        "ingressBurst": SLOW.burst, "agentSocket": network["agentSocket"] });
    let attached = || runtime.agent.with(|books| books.ports.values().next().unwrap().clone());
    let before = attached();
    assert_eq!(before.masquerade, ["10.77.0.0/24", "fd77::/64"]);
    runtime.call("ADD", "c1", &then(&bandwidth, &result)).ok();
    runtime.call("CHECK", "c1", &then(&bandwidth, &result)).ok();
    let limits = Bandwidth { ingress: Some(SLOW), ..Bandwidth::default() };
    assert_eq!(attached(), BridgePort { bandwidth: limits, ..before.clone() });
    // And an update in place changes nothing else either.
    runtime.call("ADD", "c1", &network).ok();
    assert_eq!(attached(), before);
    runtime.call("DEL", "c1", &network).ok();
}
