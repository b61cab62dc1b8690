//! The uplinks as a Kubernetes `ResourceSlice` (`resource.k8s.io/v1`): one device an uplink, that many claims may share, each
//! taking of its capacity what it asks for (consumable capacity, KEP-5075).
//!
//! A device's capacity is what claims can have: what can be handed out, without what annotations and static limits take. The scheduler
//! counts itself what claims take.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shunt_agent_api::{CapacityReport, UplinkReport};

use super::Quantity;

/// The driver's name. Capacity keys without a domain are the driver's own, and compared as they stand.
pub const DRIVER: &str = "bandwidth.shunt.dev";

/// What is taken by a claim that names no figure, and the step of those that do, in bits a second.
const STEP: u64 = 1_000_000;

/// Devices that fit into a slice.
const MAX_DEVICES: usize = 128;

/// Bytes of a DNS label, and of a name made of them (RFC 1123).
const MAX_LABEL: usize = 63;
const MAX_NAME: usize = 253;

/// A name that no node can have.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is no node's name: lower case letters, digits, `-` and `.`, at most 253, as RFC 1123 has them"
)]
pub struct NodeNameError(pub String);

/// The slice of a node. An uplink of which nothing can be promised is not in it.
///
/// # Errors
/// [`NodeNameError`].
pub fn resource_slice(node: &str, capacity: &CapacityReport) -> Result<Value, NodeNameError> {
    check_node_name(node)?;
    let names = device_names(capacity.uplinks.iter().map(|uplink| uplink.name.as_str()));
    let uplinks = capacity.uplinks.iter().zip(names);
    let uplinks = uplinks.filter_map(|(uplink, name)| Some((uplink, name, both(uplink)?)));
    let devices: Vec<_> = uplinks
        .take(MAX_DEVICES)
        .map(|(uplink, name, capacity)| {
            json!({
                "name": name,
                "allowMultipleAllocations": true,
                "attributes": { "ifName": { "string": uplink.name } },
                "capacity": capacity,
            })
        })
        .collect();
    Ok(json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": { "name": format!("{node}-{DRIVER}") },
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": { "name": node, "generation": 1, "resourceSliceCount": 1 },
            "devices": devices,
        },
    }))
}

/// An uplink's capacity each way; none if there is a way of which there is less than one step.
fn both(uplink: &UplinkReport) -> Option<Value> {
    let unclaimed = || uplink.allocations.iter().filter(|allocation| !allocation.claimed);
    let [egress, ingress] = [
        unclaimed().fold(0, |sum: u64, allocation| sum.saturating_add(allocation.egress)),
        unclaimed().fold(0, |sum: u64, allocation| sum.saturating_add(allocation.ingress)),
    ];
    Some(json!({
        "egressBandwidth": one(uplink.egress.total.saturating_sub(egress))?,
        "ingressBandwidth": one(uplink.ingress.total.saturating_sub(ingress))?,
    }))
}

/// The API server wants the largest request to be the smallest and a number of steps.
fn one(total: u64) -> Option<Value> {
    let largest = total / STEP * STEP;
    let said = |rate| Quantity(rate).to_string();
    (largest > 0).then(|| {
        let range = json!({ "min": said(STEP), "max": said(largest), "step": said(STEP) });
        json!({ "value": said(total), "requestPolicy": { "default": said(STEP), "validRange": range } })
    })
}

/// The devices' names of uplinks, in the order of [`Ledger::uplinks`](super::Ledger::uplinks). An uplink of which nothing can be promised keeps its name.
pub fn device_names<'a>(uplinks: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    uplinks.map(|uplink| device_name(uplink, &mut taken)).collect()
}

/// A DNS label for an interface, which may have any bytes in its name but `/` and blanks.
fn device_name(ifname: &str, taken: &mut BTreeSet<String>) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let label: String = ifname.chars().map(letter).take(MAX_LABEL).collect();
    let label = match label.trim_matches('-') {
        "" => "uplink".to_owned(),
        label => label.to_owned(),
    };
    let numbered = (2..).map(|number| format!("{label}-{number}"));
    let free = std::iter::once(label.clone()).chain(numbered).find(|name| taken.insert(name.clone()));
    free.unwrap_or(label)
}

/// Whether a node can have this name.
///
/// # Errors
/// [`NodeNameError`].
pub fn check_node_name(name: &str) -> Result<(), NodeNameError> {
    if is_name(name) { Ok(()) } else { Err(NodeNameError(name.to_owned())) }
}

/// Whether it is a subdomain as Kubernetes' API server checks names (`IsDNS1123Subdomain`): of its labels' lengths nothing is asked.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(known) && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= MAX_NAME && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use shunt_agent_api::{Allocation, PoolReport, SlotsReport};

    use super::*;

    fn uplink(name: &str, egress: u64, ingress: u64) -> UplinkReport {
        let pool = |total| PoolReport { total, reserved: 0, allocated: total / 2, free: total - total / 2 };
        UplinkReport {
            name: name.into(),
            speed: 0,
            egress: pool(egress),
            ingress: pool(ingress),
            slots: SlotsReport::default(),
            allocations: Vec::new(),
            unknown: None,
            carried: None,
        }
    }

    fn slice(uplinks: Vec<UplinkReport>) -> Value {
        resource_slice("node-1.example", &CapacityReport { uplinks }).unwrap()
    }

    #[test]
    fn a_slice_is_what_the_api_server_takes() {
        let expected = json!({
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": { "name": "node-1.example-bandwidth.shunt.dev" },
            "spec": {
                "driver": "bandwidth.shunt.dev",
                "nodeName": "node-1.example",
                "pool": { "name": "node-1.example", "generation": 1, "resourceSliceCount": 1 },
                "devices": [{
                    "name": "eth0",
                    "allowMultipleAllocations": true,
                    "attributes": { "ifName": { "string": "eth0" } },
                    "capacity": {
                        "egressBandwidth": { "value": "10G", "requestPolicy": {
                            "default": "1M", "validRange": { "min": "1M", "max": "10G", "step": "1M" } } },
                        "ingressBandwidth": { "value": "2500500k", "requestPolicy": {
                            "default": "1M", "validRange": { "min": "1M", "max": "2500M", "step": "1M" } } },
                    },
                }],
            },
        });
        assert_eq!(slice(vec![uplink("eth0", 10_000_000_000, 2_500_500_000)]), expected);
    }

    #[test]
    fn names_of_interfaces_become_labels_and_stay_apart() {
        let names = ["Wan.5", "wan-5", "wan_5", "--", "ünter", "eth0"];
        let slice = slice(names.map(|name| uplink(name, STEP, STEP)).into());
        let devices = slice["spec"]["devices"].as_array().unwrap();
        let labels: Vec<_> = devices.iter().map(|device| device["name"].as_str().unwrap()).collect();
        assert_eq!(labels, ["wan-5", "wan-5-2", "wan-5-3", "uplink", "nter", "eth0"]);
        let real: Vec<_> =
            devices.iter().map(|device| device["attributes"]["ifName"]["string"].clone()).collect();
        assert_eq!(real, names);
    }

    #[test]
    fn an_uplink_of_which_nothing_can_be_promised_is_left_out() {
        let slice = slice(vec![uplink("a", 0, STEP), uplink("b", STEP, STEP - 1), uplink("c", STEP, STEP)]);
        let devices = slice["spec"]["devices"].as_array().unwrap();
        assert_eq!((devices.len(), devices[0]["name"].as_str()), (1, Some("c")));
    }

    #[test]
    fn what_annotations_take_is_not_offered_and_what_claims_have_is() {
        let allocation = |egress, ingress, claimed| Allocation {
            network: "net".into(),
            container: "c".into(),
            ifname: "eth0".into(),
            egress,
            ingress,
            claimed,
        };
        let allocations = vec![
            allocation(3 * STEP, 0, false),
            allocation(2 * STEP, STEP, false),
            allocation(4 * STEP, 4 * STEP, true),
        ];
        let slice = slice(vec![UplinkReport { allocations, ..uplink("eth0", 20 * STEP, 20 * STEP) }]);
        let capacity = &slice["spec"]["devices"][0]["capacity"];
        let values = ["egressBandwidth", "ingressBandwidth"].map(|way| capacity[way]["value"].clone());
        assert_eq!(values, ["15M", "19M"]);
        assert_eq!(capacity["egressBandwidth"]["requestPolicy"]["validRange"]["max"], "15M");
    }

    #[test]
    fn there_are_never_more_devices_than_fit() {
        let many = (0..200).map(|number| uplink(&format!("eth{number}"), STEP, STEP)).collect();
        assert_eq!(slice(many)["spec"]["devices"].as_array().unwrap().len(), MAX_DEVICES);
    }

    #[test]
    fn what_is_no_nodes_name_is_refused() {
        for name in ["", "Node", "a..b", "-a", "a-", "a_b", "a/b", &"a".repeat(254), &"a.".repeat(127)] {
            assert!(resource_slice(name, &CapacityReport::default()).is_err(), "{name}");
        }
        assert!(resource_slice("ip-10-0-0-1.eu-west-1.compute.internal", &CapacityReport::default()).is_ok());
    }
}
