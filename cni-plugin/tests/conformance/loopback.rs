//! The plugin as `loopback`: what it says and leaves is what the reference plugin does.

use serde_json::{Value, json};
use shunt_lab::Namespace;

use crate::runtime::{Outcome, Runtime};

/// How containerd calls it.
fn network(version: &str) -> Value {
    json!({ "cniVersion": version, "name": "cni-loopback", "type": "loopback" })
}

/// Who is called.
#[derive(Clone, Copy, Debug)]
enum Who {
    Shunt,
    Reference,
}

impl Who {
    fn call(self, runtime: &Runtime, verb: &str, config: &Value) -> Outcome {
        match self {
            Self::Shunt => runtime.call(verb, "c1", config),
            Self::Reference => runtime.call_reference("loopback", verb, "c1", config),
        }
    }

    /// Whether `lo` is up in the container, after a verb, and what was printed, without what differs.
    fn after(
        self,
        (runtime, container): (&Runtime, &Namespace),
        verb: &str,
        config: &Value,
    ) -> (bool, bool, Value) {
        let Outcome { success, mut printed, .. } = self.call(runtime, verb, config);
        // Before 1.0.0 an address has its family, which the reference's release 1.1.1 leaves out.
        for (list, random) in [("interfaces", "sandbox"), ("ips", "version")] {
            for entry in printed.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                entry[random] = Value::Null;
            }
        }
        (success, is_up(container), printed)
    }
}

fn is_up(container: &Namespace) -> bool {
    let shown = container.command("ip", &["link", "show", "lo"]).unwrap();
    shown.contains(",UP")
}

#[test]
fn it_says_and_does_what_the_reference_does() {
    for version in ["0.3.1", "0.4.0", "1.0.0"] {
        let [ours, theirs] = [Who::Shunt, Who::Reference].map(|who| {
            let runtime = Runtime::new();
            let container = runtime.container("c1");
            let there = (&runtime, &container);
            let mut config = network(version);
            let added = who.after(there, "ADD", &config);
            config["prevResult"] = who.call(&runtime, "ADD", &config).ok();
            let checks = version != "0.3.1";
            let checked = checks.then(|| who.after(there, "CHECK", &config));
            let again = who.after(there, "ADD", &config);
            let ended = who.after(there, "DEL", &config);
            let down = checks.then(|| who.call(&runtime, "CHECK", &config).success);
            (added, checked, again, ended, down)
        });
        assert!(ours.0.1 && !ours.3.1, "up, and down again");
        assert_eq!(ours, theirs, "{version}");
    }
}

#[test]
fn a_container_that_is_gone_is_no_reason_for_a_del_to_fail_and_the_nodes_own_is_never_touched() {
    let runtime = Runtime::new();
    let config = network("1.0.0").to_string();
    let with = |verb: &'static str, netns: &str| {
        let mut environment = runtime.environment(verb, "c1");
        environment.retain(|(name, _)| *name != "CNI_NETNS");
        environment.push(("CNI_NETNS", netns.to_owned()));
        environment.push(("CNI_NETNS_OVERRIDE", "1".to_owned()));
        runtime.call_with(&environment, config.as_bytes())
    };
    with("DEL", "").ok();
    with("DEL", "/nowhere/at/all").ok();
    assert_eq!(with("ADD", "/nowhere/at/all").error().0, 8);
    for verb in ["ADD", "DEL"] {
        assert!(!with(verb, "/proc/self/ns/net").success, "{verb} in the node's own namespace");
    }
    let container = runtime.container("c1");
    container.command("ip", &["link", "set", "lo", "name", "gone"]).unwrap();
    runtime.call("DEL", "c1", &network("1.0.0")).ok();
    runtime.call("STATUS", "", &network("1.1.0")).ok();
    runtime.call("GC", "", &network("1.1.0")).ok();
}

#[test]
fn an_address_beyond_the_loopbacks_is_an_error() {
    let runtime = Runtime::new();
    let container = runtime.container("c1");
    container.command("ip", &["address", "add", "10.9.9.9/32", "dev", "lo"]).unwrap();
    for who in [Who::Shunt, Who::Reference] {
        let refused = who.call(&runtime, "ADD", &network("1.0.0"));
        assert!(!refused.success, "{who:?}: {}", refused.printed);
    }
}
