//! The reference `tuning` after shunt: it alters the container's end, behind the back of everybody.

use serde_json::{Value, json};

use crate::stage::Stage;

const MAC: &str = "02:00:5e:10:00:01";

/// The plugin, with a MAC address or not.
pub(crate) fn tuning(stage: &Stage, mac: Option<&str>) -> Value {
    // What it has altered it writes down, to put it back.
    let directory = stage.lab.root().join("tuning");
    let mut config = json!({
        "type": "tuning",
        "dataDir": directory,
        "sysctl": { "net.ipv4.conf.eth0.log_martians": "1" },
        "mtu": 1400,
    });
    if let Some(mac) = mac {
        config["mac"] = json!(mac);
    }
    config
}

/// Its own address is the kernel's to know, which learns it; the agent knows the one that shunt gave.
#[test]
fn a_tuned_container_talks_with_its_own_mac_address_mtu_and_sysctls() {
    let Some(stage) = Stage::set() else { return };
    let plain = stage.shunt();
    let network = stage.shunt().then(tuning(&stage, Some(MAC)));
    let before = stage.before(&network);
    let tuned = stage.add(&network, "tuned");
    let other = stage.add(&plain, "other");
    let link = tuned.namespace().command("ip", &["link", "show", "eth0"]).unwrap();
    assert!(link.contains("mtu 1400") && link.contains(MAC), "{link}");
    let sysctl =
        tuned.namespace().enter(|| std::fs::read_to_string("/proc/sys/net/ipv4/conf/eth0/log_martians"));
    assert_eq!(sysctl.unwrap().unwrap().trim(), "1");
    stage.assert_talk(&tuned, &other);
    stage.remove(&network, &tuned);
    stage.remove(&plain, &other);
    stage.assert_clean(&before);
}

#[test]
fn a_container_with_another_mtu_stays_fast() {
    let Some(stage) = Stage::set() else { return };
    let plain = stage.shunt();
    let network = stage.shunt().then(tuning(&stage, None));
    let before = stage.before(&network);
    let tuned = stage.add(&network, "tuned");
    let other = stage.add(&plain, "other");
    stage.assert_talk(&tuned, &other);
    stage.assert_fast(&tuned, &other);
    stage.remove(&network, &tuned);
    stage.remove(&plain, &other);
    stage.assert_clean(&before);
}
