//! Limits of some subnets only, or of all but some: by whom a packet is from, and to whom it goes.

use serde_json::{Value, json};
use shunt_lab::{Sandbox, run};

use crate::bandwidth::{ABSURD, RATE, assert_limited, assert_unlimited};
use crate::stage::Stage;

/// Three containers: "here" and "there" have no limits, "limited" has some both ways, of which the address of "there" is
/// said to be `key`'s.
fn stage(key: &str) -> Stage {
    let mut stage = Stage::empty();
    for id in ["here", "there"] {
        stage.add(id);
    }
    let there = stage.sandboxes[1].attachment().ipv4().unwrap();
    let mut network = stage.network.clone();
    for way in ["ingress", "egress"] {
        network =
            network.with(&format!("{way}Rate"), json!(RATE)).with(&format!("{way}Burst"), json!(ABSURD));
    }
    stage.network = network.with(key, json!([format!("{there}/32"), "fd99::/16"]));
    stage.add("limited");
    stage
}

/// How many prefixes the programs know.
fn prefixes(stage: &Stage) -> usize {
    let pin = stage.node.agent().bpffs().join("v2/maps/SUBNETS");
    let dump = run("bpftool", &["-j", "map", "dump", "pinned", pin.to_str().unwrap()]).unwrap();
    serde_json::from_str::<Vec<Value>>(&dump).unwrap().len()
}

fn check(stage: &Stage, limited: &Sandbox) -> Result<(), String> {
    let result = &limited.attachment().result;
    let checked = stage.network.check(stage.node.namespace(), limited.container(), result);
    checked.map_err(|error| format!("{error:#}"))
}

#[test]
fn what_goes_to_and_comes_from_an_unshaped_subnet_is_not_limited() {
    let stage = stage("unshapedSubnets");
    let [here, there, limited] = &stage.sandboxes[..] else { panic!() };
    assert_limited(limited, here);
    assert_limited(here, limited);
    assert_unlimited(limited, there);
    assert_unlimited(there, limited);
    check(&stage, limited).unwrap();
}

#[test]
fn only_what_goes_to_and_comes_from_a_shaped_subnet_is_limited() {
    let mut stage = stage("shapedSubnets");
    let [here, there, limited] = &stage.sandboxes[..] else { panic!() };
    assert_limited(limited, there);
    assert_limited(there, limited);
    assert_unlimited(limited, here);
    assert_unlimited(here, limited);
    check(&stage, limited).unwrap();
    // An update in place makes it a limit of everything, and back.
    let selective = stage.network.clone();
    let all = selective.clone().with("shapedSubnets", json!([])).with("updateExisting", json!(true));
    all.add(stage.node.namespace(), limited.container()).unwrap();
    assert_limited(limited, here);
    assert_limited(here, limited);
    assert_eq!(prefixes(&stage), 0, "of a limit of everything");
    stage.network = selective.with("updateExisting", Value::Bool(true));
    let limited = &stage.sandboxes[2];
    stage.network.add(stage.node.namespace(), limited.container()).unwrap();
    assert_unlimited(limited, &stage.sandboxes[0]);
    check(&stage, limited).unwrap();
    assert_eq!(prefixes(&stage), 3, "two, and all the rest");
    limited.namespace().command("tc", &["filter", "delete", "dev", "eth0"]).unwrap();
    if let Err(fault) = check(&stage, limited) {
        assert!(fault.contains("the limit of what the container sends is altered"), "{fault}");
    }
    let limited = stage.sandboxes.remove(2);
    limited.delete(&stage.node, &stage.network).unwrap();
    assert_eq!(prefixes(&stage), 0, "it is gone");
}
