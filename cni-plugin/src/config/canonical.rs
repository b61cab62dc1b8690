//! Keys in the specification's case.
//!
//! Go's decoder, which every other plugin uses, takes keys in any case and `null` for any field, and callers lean on it.
//! So the whole configuration is put right once, before anything looks into it: each known key gets the case that it is
//! documented in, a member that is `null` is dropped. Where two members become one, the exactly spelled one wins.

use serde_json::{Map, Value};

/// Every key of a configuration, result or runtime argument that this plugin or one of the reference plugins knows.
const KEYS: &[&str] = &[
    // The network, its attachments and its result.
    "cniVersion",
    "name",
    "type",
    "capabilities",
    "disableCheck",
    "disableGC",
    "prevResult",
    "runtimeConfig",
    "args",
    "cni",
    "cni.dev/valid-attachments",
    "cni.dev/attachments",
    "containerID",
    "ifname",
    "interfaces",
    "mac",
    "mtu",
    "sandbox",
    "socketPath",
    "pciID",
    "metadata",
    "ips",
    "interface",
    "address",
    "gateway",
    "version",
    "routes",
    "dst",
    "gw",
    "advmss",
    "priority",
    "table",
    "scope",
    "dns",
    "nameservers",
    "domain",
    "search",
    "options",
    "ip4",
    "ip6",
    "ip",
    // Capabilities.
    "portMappings",
    "bandwidth",
    "ipRanges",
    "aliases",
    "deviceID",
    "infinibandGUID",
    "cgroupPath",
    "labels",
    "io.kubernetes.cri.pod-annotations",
    "servers",
    "searches",
    "hostPort",
    "containerPort",
    "protocol",
    "hostIP",
    "ingressRate",
    "ingressBurst",
    "egressRate",
    "egressBurst",
    "shapedSubnets",
    "unshapedSubnets",
    // bridge.
    "bridge",
    "isGateway",
    "isDefaultGateway",
    "forceAddress",
    "ipMasq",
    "ipMasqBackend",
    "hairpinMode",
    "promiscMode",
    "vlan",
    "vlanTrunk",
    "id",
    "minID",
    "maxID",
    "preserveDefaultVlan",
    "macspoofchk",
    "enabledad",
    "disableContainerInterface",
    "portIsolation",
    // vlan, portmap.
    "master",
    "vlanId",
    "linkInContainer",
    "snat",
    "masqAll",
    "markMasqBit",
    "externalSetMarkChain",
    "conditionsV4",
    "conditionsV6",
    "backend",
    // host-local.
    "ipam",
    "ranges",
    "subnet",
    "rangeStart",
    "rangeEnd",
    "dataDir",
    "resolvConf",
    // shunt's own.
    "agentSocket",
    "viaAgent",
    "ipamTimeout",
    "mode",
    "vlans",
    "untagged",
    "tagged",
    "uplink",
    "uplinkMoveAddress",
    "ipspoofchk",
    "trusted",
    "ingressPolicy",
    "filters",
    "bigTcp",
    "stormControl",
    "broadcast",
    "multicast",
    "updateExisting",
    "nonMasqueradeCIDRs",
    "dataplane",
];

/// Objects whose keys are the user's own.
const OPAQUE: &[&str] = &["capabilities", "metadata", "labels", "io.kubernetes.cri.pod-annotations"];

/// Whether a key is known in exactly this spelling.
#[cfg(test)]
pub(super) fn is_known(key: &str) -> bool {
    KEYS.contains(&key)
}

/// Puts every object in `value` right.
pub fn canonicalise(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(canonicalise),
        Value::Object(object) => {
            drop_nulls(object);
            rename(object);
            let members = object.iter_mut().filter(|(key, _)| !OPAQUE.contains(&key.as_str()));
            members.for_each(|(_, member)| canonicalise(member));
        }
        _ => {}
    }
}

fn drop_nulls(object: &mut Map<String, Value>) {
    if object.values().any(Value::is_null) {
        object.retain(|_, member| !member.is_null());
    }
}

fn rename(object: &mut Map<String, Value>) {
    let misspelt: Vec<(String, &str)> = object
        .keys()
        .filter(|key| !KEYS.contains(&key.as_str()))
        .filter_map(|key| {
            KEYS.iter().find(|known| known.eq_ignore_ascii_case(key)).map(|known| (key.clone(), *known))
        })
        .collect();
    for (key, known) in misspelt {
        if let Some(member) = object.remove(&key) {
            object.entry(known).or_insert(member);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canonical(mut value: Value) -> Value {
        canonicalise(&mut value);
        value
    }

    #[test]
    fn containerd_and_podman_spell_the_same_thing() {
        let containerd = json!({"RuntimeConfig": {"portMappings": [{"HostPort": 80, "ContainerPort": 8080}],
            "bandWidth": {"IngressRate": 1}, "dns": {"Servers": ["1.1.1.1"], "Options": null}}});
        let podman = json!({"runtimeConfig": {"portMappings": [{"hostPort": 80, "containerPort": 8080}],
            "bandwidth": {"ingressRate": 1}, "dns": {"servers": ["1.1.1.1"]}}});
        assert_eq!(canonical(containerd), podman);
    }

    #[test]
    fn the_exact_spelling_wins() {
        assert_eq!(canonical(json!({"BRIDGE": "a", "bridge": "b"})), json!({"bridge": "b"}));
    }

    #[test]
    fn the_users_own_keys_are_left_alone() {
        let labels = json!({"args": {"cni": {"labels": {"NAME": "x", "Type": null}}}});
        assert_eq!(canonical(labels.clone()), labels);
    }
}
