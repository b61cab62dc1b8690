//! Validates a requested port without asking the kernel.

use std::net::IpAddr;

use shunt_agent_api::{
    AttachmentKey, Bandwidth, BridgePort, Interface, Pod, StormControl, Vlans, find_overlap,
};
use shunt_dataplane::wire::address::Mac;
use shunt_netlink::prefix;

use crate::limits::subnets::MAX_SUBNETS;
use crate::mac;
use crate::resources::Refusal;

/// The longest name of a link (`IFNAMSIZ` with its zero).
const MAX_IFNAME: usize = 15;

/// The longest network name and container id.
const MAX_NAME: usize = 200;

/// The longest of a pod's names (RFC 1123).
const MAX_POD_NAME: usize = 253;

/// Addresses of one interface.
const MAX_IPS: usize = 64;

/// Destinations of one interface that are not masqueraded.
const MAX_UNMASQUERADED: usize = 256;

/// The range of MTUs: IPv4's minimum to the kernel's maximum.
const MTU: std::ops::RangeInclusive<u32> = 68..=65535;

/// The VLANs that there are (IEEE 802.1Q).
const VIDS: std::ops::RangeInclusive<u16> = 1..=4094;

/// Validates a port. Returns its MAC address.
pub(crate) fn port(port: &BridgePort) -> Result<Mac, Refusal> {
    key(&port.key)?;
    links(port)?;
    addresses(port)?;
    gateways(port)?;
    if let Some(vlans) = &port.restrictions.vlans {
        membership(vlans)?;
    }
    let StormControl { broadcast, multicast } = port.restrictions.storm.unwrap_or_default();
    if [broadcast, multicast].contains(&Some(0)) {
        return Err(malformed("storm", "0", "is no rate: a port that floods nothing finds nobody"));
    }
    if let Some(vlan) = port.vlan.filter(|vlan| !VIDS.contains(&vlan.id)) {
        return Err(malformed("vlan", &vlan.id.to_string(), "is not between 1 and 4094"));
    }
    if let Some(pod) = &port.pod {
        names(pod)?;
    }
    what_is_built(port)?;
    limits(&port.bandwidth, port.netns.as_deref())?;
    mappings(port)?;
    mac::parse(&port.mac)
        .filter(|mac| mac.is_valid_source())
        .ok_or_else(|| malformed("mac", &port.mac, "is not a station's address, as 02:00:00:00:00:01"))
}

/// Validates what the runtime says of the pod: any text, but not any length.
fn names(pod: &Pod) -> Result<(), Refusal> {
    let Pod { namespace, name, uid, runtime, .. } = pod;
    match [namespace, name, uid, runtime].into_iter().find(|text| text.len() > MAX_POD_NAME) {
        Some(text) => Err(malformed("pod", text, "has more than 253 bytes")),
        None => Ok(()),
    }
}

/// Validates host end and bridge.
fn links(port: &BridgePort) -> Result<(), Refusal> {
    interface("bridge", &port.bridge)?;
    interface("host", &port.host)?;
    if port.bridge.index == port.host.index {
        return Err(malformed("host", &port.host.name, "is the bridge itself"));
    }
    if !MTU.contains(&port.mtu) {
        return Err(malformed("mtu", &port.mtu.to_string(), "is not between 68 and 65535"));
    }
    Ok(())
}

/// Validates the container's addresses, and what is masqueraded of them.
fn addresses(port: &BridgePort) -> Result<(), Refusal> {
    if port.ips.len() > MAX_IPS {
        let count = port.ips.len().to_string();
        return Err(malformed("ips", &count, "are more than one interface may have here, 64"));
    }
    let is_nobodys = |ip: &&IpAddr| ip.is_unspecified() || ip.is_multicast() || ip.is_loopback();
    if let Some(ip) = port.ips.iter().find(is_nobodys) {
        return Err(malformed("ips", &ip.to_string(), "cannot be a container's address"));
    }
    if let Some(prefix) = port.masquerade.iter().find(|text| prefix::parse(text).is_err()) {
        return Err(malformed("masquerade", prefix, "is not an address prefix"));
    }
    unmasqueraded(&port.unmasqueraded)
}

/// Validates the destinations that are not masqueraded.
pub(crate) fn unmasqueraded(destinations: &[String]) -> Result<(), Refusal> {
    if destinations.len() > MAX_UNMASQUERADED {
        let count = destinations.len().to_string();
        return Err(malformed("unmasqueraded", &count, "are more than one interface may have here, 256"));
    }
    let is_prefix = |text: &str| prefix::parse(text).is_ok_and(|prefix| !prefix::is_mapped(&prefix));
    match destinations.iter().find(|text| !is_prefix(text)) {
        Some(prefix) => Err(malformed("unmasqueraded", prefix, "is not an address prefix, IPv4 as IPv4")),
        None => Ok(()),
    }
}

/// Refuses what no port has together.
fn what_is_built(port: &BridgePort) -> Result<(), Refusal> {
    for (asked, what) in [
        (port.restrictions.vlans.is_some() && !port.mappings.is_empty(), "host ports of a port in VLANs"),
        (port.vlan.is_some() && !port.mappings.is_empty(), "host ports of a VLAN interface"),
        (port.vlan.is_some() && !port.masquerade.is_empty(), "masquerading of a VLAN interface"),
        (port.vlan.is_some() && port.is_restricted(), "restrictions of a VLAN interface"),
    ] {
        if asked {
            return Err(Refusal::NotBuilt(what));
        }
    }
    Ok(())
}

/// Validates host ports: each needs a target, and only one.
fn mappings(port: &BridgePort) -> Result<(), Refusal> {
    for mapping in &port.mappings {
        let wrong = |reason| Err(malformed("mappings", &mapping.to_string(), reason));
        if mapping.host_port == 0 || mapping.container_port == 0 {
            return wrong("has port 0, which is none");
        }
        if mapping.host_ip.is_some_and(|ip| ip.is_multicast()) {
            return wrong("is at no address of the node's");
        }
        if !port.ips.iter().any(|ip| mapping.is_of_family(*ip)) {
            return wrong("leads to no address of the container's");
        }
    }
    match find_overlap(&port.mappings) {
        Some(mapping) => Err(malformed("mappings", &mapping.to_string(), "is asked for twice")),
        None => Ok(()),
    }
}

/// Validates VLANs. A port in no VLAN would drop everything.
fn membership(vlans: &Vlans) -> Result<(), Refusal> {
    let Vlans { untagged, tagged, .. } = vlans;
    if let Some(vid) = tagged.iter().chain(untagged).find(|vid| !VIDS.contains(vid)) {
        return Err(malformed("vlans", &vid.to_string(), "is not between 1 and 4094"));
    }
    if untagged.is_none() && tagged.is_empty() {
        return Err(malformed("vlans", "", "names no VLAN"));
    }
    if !tagged.is_sorted_by(|one, other| one < other) || untagged.is_some_and(|vid| tagged.contains(&vid)) {
        return Err(malformed("vlans", &format!("{tagged:?}"), "is not ascending, or names a VLAN twice"));
    }
    Ok(())
}

/// Validates the gateways of a port: the bridge itself, or one in the VLAN of the port's untagged frames.
fn gateways(port: &BridgePort) -> Result<(), Refusal> {
    if let Some(text) = port.service.gateways.iter().find(|text| prefix::parse(text).is_err()) {
        return Err(malformed("gateways", text, "is not an address with its subnet's length"));
    }
    let Some(wanted) = &port.service.vlan_gateway else { return Ok(()) };
    if let Some(text) = wanted.addresses.iter().find(|text| prefix::parse(text).is_err()) {
        return Err(malformed("vlan_gateway", text, "is not an address with its subnet's length"));
    }
    if port.vlan.is_some() || port.restrictions.vlans.as_ref().is_none_or(|vlans| vlans.untagged.is_none()) {
        return Err(malformed("vlan_gateway", &wanted.addresses.join(", "), "is in no VLAN"));
    }
    Ok(())
}

/// Validates limits. Egress is limited in the container's namespace, whose path has to be known.
fn limits(bandwidth: &Bandwidth, netns: Option<&str>) -> Result<(), Refusal> {
    for (field, limit) in [("ingress", bandwidth.ingress), ("egress", bandwidth.egress)] {
        if let Some(limit) = limit.filter(|limit| limit.rate == 0 || limit.burst == 0) {
            let value = format!("{} with a burst of {}", limit.rate, limit.burst);
            return Err(malformed(field, &value, "is no limit: rate and burst are at least 1 bit"));
        }
    }
    let Bandwidth { shaped, unshaped, .. } = bandwidth;
    if !shaped.is_empty() && !unshaped.is_empty() {
        return Err(malformed(
            "unshaped",
            &unshaped.join(","),
            "cannot be given together with subnets to limit",
        ));
    }
    for (field, subnets) in [("shaped", shaped), ("unshaped", unshaped)] {
        if let Some(subnet) = subnets.iter().find(|subnet| prefix::parse(subnet).is_err()) {
            return Err(malformed(field, subnet, "is not an address prefix"));
        }
        if subnets.len() > MAX_SUBNETS {
            return Err(malformed(field, &subnets.len().to_string(), "are more subnets than fit, 256"));
        }
    }
    match netns {
        None | Some("") if bandwidth.egress.is_some() => {
            Err(malformed("netns", "", "is needed to limit what the container sends"))
        }
        _ => Ok(()),
    }
}

/// Validates a key, of which file names are made.
fn key(key: &AttachmentKey) -> Result<(), Refusal> {
    for (field, value) in [("network", &key.network), ("container", &key.container)] {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if value.is_empty() || value.len() > MAX_NAME {
            return Err(malformed(field, value, "has not between 1 and 200 characters"));
        }
        if !value.starts_with(|c: char| c.is_ascii_alphanumeric()) || !value.chars().all(allowed) {
            return Err(malformed(
                field,
                value,
                "is not letters, digits, '_', '.' and '-' after a letter or digit",
            ));
        }
    }
    ifname("ifname", &key.ifname)
}

fn interface(field: &'static str, interface: &Interface) -> Result<(), Refusal> {
    if interface.index == 0 {
        return Err(malformed(field, &interface.name, "has index 0, which no link has"));
    }
    ifname(field, &interface.name)
}

/// The kernel's own rule (`dev_valid_name`, net/core/dev.c), and no `%`, of which it would make a number.
fn ifname(field: &'static str, name: &str) -> Result<(), Refusal> {
    let forbidden = |c: char| matches!(c, '/' | ':' | '%') || c.is_control() || c.is_whitespace();
    if name.is_empty() || name.len() > MAX_IFNAME || matches!(name, "." | "..") || name.contains(forbidden) {
        return Err(malformed(field, name, "is not an interface's name"));
    }
    Ok(())
}

fn malformed(field: &'static str, value: &str, reason: &'static str) -> Refusal {
    Refusal::Malformed { field, value: value.chars().take(MAX_NAME).collect(), reason }
}

#[cfg(test)]
mod tests {
    use shunt_agent_api::{Rate, Restrictions, Service};

    use super::*;

    fn good() -> BridgePort {
        BridgePort {
            key: AttachmentKey { network: "n".into(), container: "c".into(), ifname: "eth0".into() },
            bridge: Interface { name: "br0".into(), index: 2 },
            host: Interface { name: "veth0".into(), index: 3 },
            mac: "02:00:00:00:00:01".into(),
            ips: vec!["10.0.0.2".parse().unwrap()],
            mtu: 1500,
            netns: None,
            peer_up: false,
            masquerade: Vec::new(),
            unmasqueraded: Vec::new(),
            restrictions: Restrictions::default(),
            mappings: Vec::new(),
            bandwidth: Bandwidth::default(),
            service: Service::default(),
            lease_dir: None,
            vlan: None,
            pod: None,
        }
    }

    #[test]
    fn an_ordinary_port_is_valid() {
        assert_eq!(port(&good()).unwrap(), Mac::new([2, 0, 0, 0, 0, 1]));
    }

    #[test]
    fn an_impossible_port_is_refused_by_the_name_of_its_field() {
        type Spoil = fn(&mut BridgePort);
        let cases: [(&str, Spoil); 22] = [
            ("shaped", |p| p.bandwidth.shaped = vec!["10.0.0.0".into()]),
            ("unshaped", |p| p.bandwidth.unshaped = vec!["fd00::/8".into(); MAX_SUBNETS + 1]),
            ("unshaped", |p| {
                p.bandwidth.shaped = vec!["10.0.0.0/8".into()];
                p.bandwidth.unshaped = vec!["10.1.0.0/16".into()];
            }),
            ("ingress", |p| p.bandwidth.ingress = Some(Rate { rate: 0, burst: 8 })),
            ("egress", |p| p.bandwidth.egress = Some(Rate { rate: 8, burst: 0 })),
            ("netns", |p| p.bandwidth.egress = Some(Rate { rate: 8, burst: 8 })),
            ("network", |p| p.key.network = "../../etc".into()),
            ("network", |p| p.key.network = String::new()),
            ("container", |p| p.key.container = ".hidden".into()),
            ("container", |p| p.key.container = "x".repeat(MAX_NAME + 1)),
            ("ifname", |p| p.key.ifname = "a/b".into()),
            ("host", |p| p.host.name = "sixteen-letters-".into()),
            ("bridge", |p| p.bridge.index = 0),
            ("host", |p| p.host = p.bridge.clone()),
            ("mac", |p| p.mac = "01:00:00:00:00:01".into()),
            ("mac", |p| p.mac = "nonsense".into()),
            ("mtu", |p| p.mtu = 0),
            ("ips", |p| p.ips = vec!["224.0.0.1".parse().unwrap()]),
            ("gateways", |p| p.service.gateways = vec!["10.0.0.1".into()]),
            ("masquerade", |p| p.masquerade = vec!["10.0.0.0".into()]),
            ("unmasqueraded", |p| p.unmasqueraded = vec!["10.0.0.0".into()]),
            ("unmasqueraded", |p| p.unmasqueraded = vec!["10.0.0.0/8".into(); 257]),
        ];
        for (field, spoil) in cases {
            let mut spoiled = good();
            spoil(&mut spoiled);
            let refusal = port(&spoiled).unwrap_err();
            assert!(
                matches!(refusal, Refusal::Malformed { field: f, .. } if f == field),
                "{field}: {refusal}"
            );
        }
    }
}
