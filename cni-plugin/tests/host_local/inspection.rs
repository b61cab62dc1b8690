//! CHECK and STATUS.

use std::{fs, net::IpAddr};

use serde_json::json;
use shunt::host_local::Error;

use crate::network::Network;

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn check_wants_every_expected_address_of_the_ranges() {
    let network = Network::new(json!({"ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "fd00::/64"}]]}));
    network.add("c1", "eth0").unwrap();
    let expected = addresses(&["10.0.0.2", "fd00::2"]);
    network.check("c1", "eth0", &expected).unwrap();

    fs::remove_file(network.file("fd00::2")).unwrap();
    let message = network.check("c1", "eth0", &expected).unwrap_err().to_string();
    assert_eq!(message, "fd00::2 should be allocated to c1/eth0, but it is free");
    fs::write(network.file("fd00::2"), "c2\r\neth0").unwrap();
    let message = network.check("c1", "eth0", &expected).unwrap_err().to_string();
    assert_eq!(message, "fd00::2 should be allocated to c1/eth0, but is held by c2/eth0");
}

#[test]
fn check_tolerates_addresses_that_are_not_ours_and_ranges_that_were_changed() {
    let mut network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    network.add("c1", "eth0").unwrap();
    network.check("c1", "eth0", &addresses(&["10.0.0.2", "192.0.2.7"])).unwrap();
    network.reconfigure(|ipam| ipam["subnet"] = json!("10.1.0.0/24"));
    network.check("c1", "eth0", &addresses(&["10.0.0.2"])).unwrap();
}

#[test]
fn check_of_an_attachment_without_an_address_fails() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    assert!(matches!(network.check("c1", "eth0", &[]), Err(Error::NothingAllocated { .. })));
    network.add("c1", "eth0").unwrap();
    network.check("c1", "eth0", &[]).unwrap();
    assert!(matches!(network.check("c1", "net1", &[]), Err(Error::NothingAllocated { .. })));
}

#[test]
fn status_makes_nothing_and_is_well_before_the_first_add() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    network.status().unwrap();
    assert!(!network.file("").exists());
}

#[test]
fn status_says_when_a_range_set_is_used_up_and_recovers() {
    let network = Network::new(json!({"ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "fd00::/126"}]]}));
    network.add("c1", "eth0").unwrap();
    network.status().unwrap();
    network.add("c2", "eth0").unwrap();
    let message = network.status().unwrap_err().to_string();
    assert_eq!(message, "no address left in range set 1 (fd00::1-fd00::3): 2 of 2 are in use");
    network.del("c1", "eth0").unwrap();
    network.status().unwrap();
}

#[test]
fn status_says_when_the_configuration_or_the_directory_is_unusable() {
    let mut network = Network::new(json!({"subnet": "10.0.0.0/33"}));
    assert!(network.status().unwrap_err().to_string().starts_with("ipam.subnet: "));
    network.reconfigure(|ipam| {
        ipam["subnet"] = json!("10.0.0.0/24");
        // Not writable for anybody.
        ipam["dataDir"] = json!("/proc/sys/networks");
    });
    assert!(matches!(network.status(), Err(Error::Io { .. })));
    network.reconfigure(|ipam| ipam["dataDir"] = json!("/dev/null/networks"));
    assert!(matches!(network.status(), Err(Error::Io { .. })));
    network.reconfigure(|ipam| {
        ipam.as_object_mut().unwrap().remove("subnet");
    });
    assert!(matches!(network.status(), Err(Error::NoRanges)));
}
