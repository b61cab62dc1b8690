//! What ours does where host-local does otherwise, or nothing.

use std::fs;

use serde_json::{Value, json};
use shunt::host_local::{self, Error, Request};

use crate::network::{Network, text};

#[test]
fn a_failed_add_leaves_what_the_attachment_held_before() {
    let network = Network::new(json!({"ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "fd00::/126"}]]}));
    network.add("c1", "eth0").unwrap();
    network.add("c2", "eth0").unwrap();
    let before = network.held();
    // 10.0.0.9 is free, but the second range set has no address left.
    assert!(matches!(network.add_with("c1", &["10.0.0.9", "fd00::2"]), Err(Error::AddressTaken { .. })));
    assert!(matches!(network.add("c3", "eth0"), Err(Error::Exhausted { set: 1, .. })));
    assert_eq!(network.held(), before);
}

#[test]
fn an_exhausted_range_set_says_which_and_how_many() {
    let network = Network::new(json!({"ranges": [[{"subnet": "10.0.0.0/30"}, {"subnet": "10.0.1.0/30"}]]}));
    network.add("c1", "eth0").unwrap();
    network.add("c2", "eth0").unwrap();
    assert_eq!(
        network.add("c3", "eth0").unwrap_err().to_string(),
        "no address left in range set 0 (10.0.0.1-10.0.0.2,10.0.1.1-10.0.1.2): 2 of 2 are in use"
    );
}

#[test]
fn a_requested_address_that_is_held_names_its_holder() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    network.add_with("c1", &["10.0.0.7"]).unwrap();
    let error = network.add_with("c2", &["10.0.0.7"]).unwrap_err();
    assert_eq!(error.to_string(), "requested address 10.0.0.7 is held by c1/eth0");
}

#[test]
fn the_runtimes_ranges_come_first() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    let ranges = json!([[{"subnet": "10.7.0.0/16", "rangeStart": "10.7.3.0"}]]);
    let request = Request { ip_ranges: Some(&ranges), ..network.request("c1", "eth0") };
    let answer = host_local::add(&request).unwrap();
    assert_eq!(text(&answer), ["10.7.3.0/16 via 10.7.0.1", "10.0.0.2/24 via 10.0.0.1"]);
}

#[test]
fn del_needs_neither_valid_ranges_nor_a_directory() {
    let mut network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    network.del("c1", "eth0").unwrap();
    assert!(!network.file("").exists());
    network.add("c1", "eth0").unwrap();
    network.reconfigure(|ipam| ipam["subnet"] = json!("no subnet"));
    network.del("c1", "eth0").unwrap();
    network.del("c1", "eth0").unwrap();
    assert!(network.held().is_empty());
}

#[test]
fn gc_leaves_exactly_the_valid_attachments() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    for (container, ifname) in [("c1", "eth0"), ("c1", "net1"), ("c2", "eth0"), ("c3", "eth0")] {
        network.add(container, ifname).unwrap();
    }
    network.gc(&[("c1", "net1"), ("c3", "eth0"), ("c9", "eth0")]).unwrap();
    let holders: Vec<_> = network.held().into_values().collect();
    assert_eq!(holders, ["c1\r\nnet1", "c3\r\neth0"]);
}

#[test]
fn gc_keeps_old_records_of_valid_containers_and_addresses_reserved_by_hand() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    network.add("c1", "eth0").unwrap();
    for (address, record) in [("10.0.0.50", "c1"), ("10.0.0.51", "gone"), ("10.0.0.52", "")] {
        fs::write(network.file(address), record).unwrap();
    }
    network.gc(&[("c1", "eth0")]).unwrap();
    let names: Vec<_> = network.held().into_keys().map(|address| address.to_string()).collect();
    assert_eq!(names, ["10.0.0.2", "10.0.0.50", "10.0.0.52"]);
    assert!(network.file("last_reserved_ip.0").exists() && network.file("lock").exists());
}

#[test]
fn gc_leaves_nothing_of_those_that_were_killed_or_freed_by_host_local() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    for container in ["c1", "c2", "c3"] {
        network.add(container, "eth0").unwrap();
    }
    // host-local's DEL of one, and its DEL and ADD of another; it knows of no second names.
    fs::remove_file(network.file("10.0.0.3")).unwrap();
    fs::remove_file(network.file("10.0.0.4")).unwrap();
    fs::write(network.file("10.0.0.4"), "c4\r\neth0").unwrap();
    fs::write(network.file("reserving"), "c5").unwrap();
    network.gc(&[("c1", "eth0")]).unwrap();
    assert!(!network.file("reserving").exists());
    let names = fs::read_dir(network.data_dir().join(".holders/net")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["c1"]);
    assert_eq!(network.held().len(), 1);
}

#[test]
fn gc_of_one_network_leaves_another_ones_addresses() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    network.add("c1", "eth0").unwrap();
    host_local::gc("another", network.ipam(), &[]).unwrap();
    assert_eq!(network.held().len(), 1);
    assert!(!network.data_dir().join("another").exists());
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let mut network = Network::new(json!({"subnet": "10.0.0.0/24"}));
    let file = network.data_dir().join("file");
    fs::write(&file, "").unwrap();
    network.reconfigure(|ipam: &mut Value| ipam["dataDir"] = json!(file));
    let message = network.add("c1", "eth0").unwrap_err().to_string();
    assert!(message.starts_with(file.join("net").to_str().unwrap()), "{message}");
}
