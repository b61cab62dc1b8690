//! The keys of the reference `portmap`, which it has besides the capability.
//!
//! No packet of a host port meets iptables, conntrack or a mark here: `markMasqBit`, `externalSetMarkChain` and `backend` say how
//! the reference makes its rules, and change nothing. `snat` and `masqAll` do what they do there: without `snat` the container sees its
//! neighbours' own addresses.
//! All are read, so that what the reference would refuse is refused.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde::Deserialize;
use shunt_agent_api::PortMapping as HostPort;

use super::error::ConfigError;
use super::host_ports::Clients;

/// The bits of a packet's mark.
const MARK_BITS: i64 = 32;

/// `portmap`'s own keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Portmap {
    snat: Option<bool>,
    masq_all: bool,
    mark_masq_bit: Option<i64>,
    external_set_mark_chain: Option<String>,
    #[serde(rename = "conditionsV4")]
    conditions_v4: Vec<String>,
    #[serde(rename = "conditionsV6")]
    conditions_v6: Vec<String>,
    backend: Option<String>,
}

/// Checks them.
///
/// # Errors
/// [`ConfigError::Invalid`] for what the reference refuses.
pub(super) fn check(portmap: &Portmap) -> Result<(), ConfigError> {
    let invalid = |key, why: String| Err(ConfigError::Invalid { key, why });
    if portmap.mark_masq_bit.is_some() && portmap.external_set_mark_chain.is_some() {
        return invalid("externalSetMarkChain", "cannot be set together with markMasqBit".to_owned());
    }
    if let Some(bit) = portmap.mark_masq_bit.filter(|bit| !(0..MARK_BITS).contains(bit)) {
        return invalid("markMasqBit", format!("{bit} is not between 0 and 31"));
    }
    if let Some(backend) = portmap.backend.as_deref()
        && !["iptables", "nftables", ""].contains(&backend)
    {
        return invalid("backend", format!("`{backend}` is none of iptables, nftables"));
    }
    Ok(())
}

/// The host ports that `conditionsV4` and `conditionsV6` leave, each at the address that they name.
///
/// # Errors
/// [`ConfigError::Condition`] for conditions that no host port can be held to: without them it would lead further than was meant.
pub(super) fn narrow(portmap: &Portmap, ports: Vec<HostPort>) -> Result<Vec<HostPort>, ConfigError> {
    if ports.is_empty() {
        return Ok(ports);
    }
    let v4 = condition("conditionsV4", &portmap.conditions_v4, Ipv4Addr::UNSPECIFIED.into())?;
    let v6 = condition("conditionsV6", &portmap.conditions_v6, Ipv6Addr::UNSPECIFIED.into())?;
    if v4.is_unspecified() && v6.is_unspecified() {
        return Ok(ports);
    }
    let at = |port: HostPort, only: IpAddr| match port.host_ip {
        Some(ip) if ip.is_ipv4() != only.is_ipv4() => None,
        Some(ip) if !ip.is_unspecified() => (only.is_unspecified() || only == ip).then_some(port),
        _ => Some(HostPort { host_ip: Some(only), ..port }),
    };
    Ok(ports.into_iter().flat_map(|port| [at(port, v4), at(port, v6)]).flatten().collect())
}

/// The one address of the node that a family's conditions, words of iptables, leave; `any` where they leave all.
fn condition(key: &'static str, words: &[String], any: IpAddr) -> Result<IpAddr, ConfigError> {
    let refuse = |what: &[String]| {
        let why = format!(
            "`{}` cannot be held to: a host port is at one address of the node (`-d ADDRESS`, `hostIP`) or at all. Put the plugin whose \
             rules can into CNI_PATH under this one's name with .orig (portmap.orig), or leave it to a NetworkPolicy who may come",
            what.join(" ")
        );
        Err(ConfigError::Condition { key, why })
    };
    let mut only = any;
    for words in words.chunks(2) {
        let [option, value] = words else { return refuse(words) };
        let is_everything = value.parse().is_ok_and(|prefix: IpNet| prefix.prefix_len() == 0);
        match option.as_str() {
            "-d" | "--dst" | "--destination" | "-s" | "--src" | "--source" if is_everything => {}
            "-d" | "--dst" | "--destination" => match single(value) {
                Some(ip) if ip.is_ipv4() == any.is_ipv4() && (only == any || only == ip) => only = ip,
                _ => return refuse(words),
            },
            // With its negation: `! -d ADDRESS`.
            "!" => return refuse(&[words, &["…".to_owned()]].concat()),
            _ => return refuse(words),
        }
    }
    Ok(only)
}

/// One address, also with the length of a prefix that has no other.
fn single(text: &str) -> Option<IpAddr> {
    let prefix: IpNet = text.parse().or_else(|_| text.parse().map(|ip: IpAddr| ip.into())).ok()?;
    (prefix.prefix_len() == prefix.max_prefix_len()).then(|| prefix.addr())
}

/// Whom the container is to see. Without `snat` the reference's `masqAll` does nothing.
pub(super) fn clients(portmap: &Portmap) -> Clients {
    match (portmap.snat, portmap.masq_all) {
        (Some(false), _) => Clients::All,
        (_, true) => Clients::None,
        _ => Clients::Routed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn judged(keys: Value) -> Result<(), ConfigError> {
        check(&serde_json::from_value(keys).unwrap())
    }

    #[test]
    fn keys_of_rules_are_read_and_change_nothing() {
        for keys in [
            json!({}),
            json!({ "snat": true, "masqAll": false, "backend": "iptables" }),
            json!({ "snat": false, "masqAll": true, "markMasqBit": 13 }),
            json!({ "externalSetMarkChain": "KUBE-MARK-MASQ", "conditionsV4": [], "backend": "" }),
        ] {
            judged(keys.clone()).unwrap_or_else(|error| panic!("{keys}: {error}"));
        }
    }

    #[test]
    fn clients_are_hidden_where_the_reference_hides_them() {
        for (keys, seen) in [
            (json!({}), Clients::Routed),
            (json!({ "snat": true }), Clients::Routed),
            (json!({ "snat": false }), Clients::All),
            (json!({ "masqAll": true }), Clients::None),
            (json!({ "masqAll": true, "snat": true }), Clients::None),
            (json!({ "masqAll": true, "snat": false }), Clients::All),
        ] {
            let portmap: Portmap = serde_json::from_value(keys.clone()).unwrap();
            assert_eq!(clients(&portmap), seen, "{keys}");
        }
    }

    #[test]
    fn what_the_reference_refuses_is_refused() {
        for (keys, key) in [
            (json!({ "externalSetMarkChain": "X", "markMasqBit": 13 }), "externalSetMarkChain"),
            (json!({ "markMasqBit": 32 }), "markMasqBit"),
            (json!({ "markMasqBit": -1 }), "markMasqBit"),
            (json!({ "backend": "ebtables" }), "backend"),
        ] {
            let refused = judged(keys.clone());
            let named = matches!(&refused, Err(ConfigError::Invalid { key: named, .. }) if *named == key);
            assert!(named, "{keys}: {refused:?}");
        }
    }

    fn narrowed(keys: &Value, host_ips: &[&str]) -> Result<Vec<String>, ConfigError> {
        let port = |ip: &&str| HostPort {
            protocol: shunt_agent_api::Protocol::Tcp,
            host_ip: (!ip.is_empty()).then(|| ip.parse().unwrap()),
            host_port: 80,
            container_port: 80,
            masquerade: false,
            keeps_source: false,
        };
        let ports = host_ips.iter().map(port).collect();
        let ports = narrow(&serde_json::from_value(keys.clone()).unwrap(), ports)?;
        Ok(ports.iter().map(|port| port.host_ip.map(|ip| ip.to_string()).unwrap_or_default()).collect())
    }

    #[test]
    fn a_destination_is_the_address_that_a_host_port_is_at() {
        let at = json!({ "conditionsV4": ["-d", "192.0.2.1"] });
        assert_eq!(narrowed(&at, &[""]).unwrap(), ["192.0.2.1", "::"]);
        assert_eq!(narrowed(&at, &["0.0.0.0", "::"]).unwrap(), ["192.0.2.1", "::"]);
        assert_eq!(narrowed(&at, &["192.0.2.1", "2001:db8::1"]).unwrap(), ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(narrowed(&at, &["192.0.2.2"]).unwrap(), [""; 0], "no packet goes to both");
        let both =
            json!({ "conditionsV4": ["--dst", "192.0.2.1/32"], "conditionsV6": ["-d", "2001:db8::1/128"] });
        assert_eq!(narrowed(&both, &[""]).unwrap(), ["192.0.2.1", "2001:db8::1"]);
        let all = json!({ "conditionsV4": ["-s", "0.0.0.0/0", "-d", "0.0.0.0/0"] });
        assert_eq!(narrowed(&all, &["", "192.0.2.2"]).unwrap(), ["", "192.0.2.2"]);
    }

    #[test]
    fn a_condition_that_cannot_hold_is_refused_by_its_words_where_there_are_host_ports() {
        for (words, named) in [
            (json!(["-s", "192.0.2.0/24"]), "-s 192.0.2.0/24"),
            (json!(["-d", "192.0.2.0/24"]), "-d 192.0.2.0/24"),
            (json!(["!", "-d", "192.0.2.1"]), "! -d"),
            (json!(["-d"]), "-d"),
            (json!(["-i", "eth0"]), "-i eth0"),
            (json!(["-d", "2001:db8::1"]), "-d 2001:db8::1"),
        ] {
            let keys = json!({ "conditionsV4": words });
            let error = narrowed(&keys, &[""]).unwrap_err().to_string();
            assert!(error.contains("conditionsV4") && error.contains(named), "{words}: {error}");
            assert_eq!(narrowed(&keys, &[]).unwrap(), [""; 0], "without host ports they are nobody's");
        }
    }
}
