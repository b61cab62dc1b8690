//! `shunt-ipam` as a program: what a main plugin of somebody else's would run in host-local's place.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    network::Network,
    reference::{PLUGIN, run_plugin, run_version},
};

/// The plugin under the name that `cargo xtask install` gives it; the link goes with the directory.
fn install() -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("shunt-ipam");
    symlink(env!("CARGO_BIN_EXE_shunt"), &link).unwrap();
    let program = link.to_str().unwrap().to_owned();
    (dir, program)
}

fn settings() -> Value {
    json!({
        "ranges": [[{"subnet": "10.0.0.0/29"}], [{"subnet": "fd00::/64", "gateway": "fd00::3"}]],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.9.0.0/16", "gw": "10.0.0.6"}],
    })
}

#[test]
fn the_program_prints_and_writes_what_the_reference_plugin_does() {
    let (_dir, program) = install();
    let (ours, theirs) = (Network::new(settings()), Network::new(settings()));
    let steps = [
        ("ADD", "c1", None),
        ("ADD", "c1", None),
        ("ADD", "c2", Some("10.0.0.5")),
        ("CHECK", "c2", None),
        ("DEL", "c1", None),
        ("DEL", "c1", None),
        ("CHECK", "c1", None),
        ("ADD", "c3", None),
        ("ADD", "c4", None),
    ];
    for (verb, container, requested) in steps {
        let answer = run_plugin(&program, ours.ipam(), verb, container, "eth0", requested);
        let expected = run_plugin(PLUGIN, theirs.ipam(), verb, container, "eth0", requested);
        assert_eq!(answer.is_ok(), expected.is_ok(), "{verb} {container}: {answer:?}, theirs {expected:?}");
        assert_eq!(answer.ok(), expected.ok(), "{verb} {container}");
        assert_eq!(ours.files(), theirs.files(), "after {verb} {container}");
    }
}

#[test]
fn the_program_and_the_reference_plugin_share_a_network() {
    let (_dir, program) = install();
    let network = Network::new(settings());
    for (index, plugin) in [program.as_str(), PLUGIN, &program, PLUGIN].into_iter().enumerate() {
        let result = run_plugin(plugin, network.ipam(), "ADD", &format!("c{index}"), "eth0", None).unwrap();
        assert_eq!(result["ips"][0]["address"], format!("10.0.0.{}/29", index + 2));
    }
    for (index, plugin) in [PLUGIN, &program, PLUGIN, &program].into_iter().enumerate() {
        run_plugin(plugin, network.ipam(), "DEL", &format!("c{index}"), "eth0", None).unwrap();
    }
    assert!(network.held().is_empty());
}

/// 0.2.0 has `ip4` and `ip6` in its results, and no second place for either.
#[test]
fn before_0_3_0_a_second_range_set_of_a_family_is_refused_as_by_the_reference_plugin() {
    let (_dir, program) = install();
    let two = json!({"ranges": [[{"subnet": "10.0.0.0/29"}], [{"subnet": "10.0.1.0/29"}]]});
    let one_each = json!({"ranges": [[{"subnet": "10.0.0.0/29"}], [{"subnet": "fd00::/64"}]]});
    for (ipam, version, fine) in
        [(&two, "0.2.0", false), (&one_each, "0.2.0", true), (&two, "0.1.0", false), (&two, "0.3.0", true)]
    {
        for plugin in [program.as_str(), PLUGIN] {
            let network = Network::new(ipam.clone());
            let result = run_version(plugin, version, network.ipam(), "ADD", "c1", "eth0", None);
            assert_eq!(result.is_ok(), fine, "{plugin} {version}: {result:?}");
            if !fine {
                assert!(network.held().is_empty(), "{plugin} {version}: {:?}", network.held());
            }
        }
    }
}
