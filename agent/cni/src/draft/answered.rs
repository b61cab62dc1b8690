//! CNI's result in the draft's words. All is read leniently: what a plugin of another project says strangely is left out, and stands in
//! `extradata["result"]`.

use std::collections::HashMap;

use serde_json::Value;

use super::keys::{CONTAINER, NETWORK};
use crate::proto::draft::{AddAttachmentResponse, Ip, IpConfig, IpFamily, Route};
use crate::proto::v1;

const RESULT: &str = "result";

/// What is said of an attachment.
pub(super) fn answer(network: &str, attachment: &v1::Attachment, result: &[u8]) -> AddAttachmentResponse {
    let said: Value = serde_json::from_slice(result).unwrap_or_default();
    let v1::Attachment { container_id, ifname } = attachment;
    AddAttachmentResponse {
        ipconfigs: interfaces(ifname, &said),
        routes: list(&said, "routes").map(|route| route_of(ifname, route)).collect(),
        extradata: extradata(network, container_id, &String::from_utf8_lossy(result)),
    }
}

/// Where an attachment is, and CNI's own result.
pub(super) fn extradata(network: &str, container: &str, result: &str) -> HashMap<String, String> {
    let said = [(NETWORK, network), (CONTAINER, container), (RESULT, result)];
    said.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The interfaces in the pod with their addresses; one that no interface has is the asked one's.
fn interfaces(ifname: &str, result: &Value) -> HashMap<String, IpConfig> {
    let mut found = HashMap::new();
    let named: Vec<_> = list(result, "interfaces").collect();
    for interface in named.iter().filter(|interface| !text(interface, "sandbox").is_empty()) {
        let mac = text(interface, "mac").to_owned();
        found.insert(text(interface, "name").to_owned(), IpConfig { mac, ..IpConfig::default() });
    }
    let newer = list(result, "ips").map(|ip| (ip["interface"].as_u64(), text(ip, "address")));
    let older = ["ip4", "ip6"].into_iter().map(|family| (None, text(&result[family], "ip")));
    for (index, address) in newer.chain(older).filter(|(_, address)| !address.is_empty()) {
        let of = index.and_then(|index| named.get(usize::try_from(index).ok()?));
        let name = of.map_or(ifname, |interface| text(interface, "name"));
        found.entry(name.to_owned()).or_default().ip.push(ip_of(address));
    }
    found
}

fn ip_of(address: &str) -> Ip {
    let family = if address.contains(':') { IpFamily::V6 } else { IpFamily::V4 };
    Ip {
        ip_address: address.split('/').next().unwrap_or_default().to_owned(),
        cidr: address.to_owned(),
        family: family.into(),
    }
}

fn route_of(ifname: &str, route: &Value) -> Route {
    let number =
        |key: &str| route[key].as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or_default();
    Route {
        dst: text(route, "dst").to_owned(),
        gateway: text(route, "gw").to_owned(),
        dev: ifname.to_owned(),
        mtu: number("mtu"),
        scope: number("scope"),
        extradata: HashMap::new(),
    }
}

fn list<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    object[key].as_array().into_iter().flatten()
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answered(result: &Value) -> AddAttachmentResponse {
        let attachment = v1::Attachment { container_id: "c1".into(), ifname: "eth0".into() };
        answer("pods", &attachment, result.to_string().as_bytes())
    }

    #[test]
    fn addresses_are_those_of_the_pod_s_interfaces() {
        let said = answered(&json!({
            "interfaces": [{ "name": "cni0" }, { "name": "eth0", "sandbox": "/run/netns/x", "mac": "02:00:00:00:00:01" }],
            "ips": [
                { "address": "10.0.0.2/24", "interface": 1 },
                { "address": "fd00::2/64", "interface": 1 }
            ],
            "routes": [{ "dst": "0.0.0.0/0", "gw": "10.0.0.1", "mtu": 1400 }]
        }));
        assert_eq!(said.ipconfigs.len(), 1);
        let eth0 = &said.ipconfigs["eth0"];
        assert_eq!(eth0.mac, "02:00:00:00:00:01");
        let ips: Vec<_> =
            eth0.ip.iter().map(|ip| (ip.ip_address.as_str(), ip.cidr.as_str(), ip.family())).collect();
        assert_eq!(ips, [("10.0.0.2", "10.0.0.2/24", IpFamily::V4), ("fd00::2", "fd00::2/64", IpFamily::V6)]);
        let route = &said.routes[0];
        assert_eq!(
            (route.dst.as_str(), route.gateway.as_str(), route.dev.as_str()),
            ("0.0.0.0/0", "10.0.0.1", "eth0")
        );
        assert_eq!((route.mtu, route.scope), (1400, 0));
        assert_eq!(said.extradata["network"], "pods");
    }

    #[test]
    fn a_result_of_an_old_version_and_a_strange_one_are_answered() {
        let said = answered(&json!({ "ip4": { "ip": "10.0.0.2/24" } }));
        assert_eq!(said.ipconfigs["eth0"].ip[0].cidr, "10.0.0.2/24");
        for strange in
            [json!(null), json!([1]), json!({ "ips": [{ "interface": 9, "address": 7 }], "routes": 1 })]
        {
            assert!(answered(&strange).ipconfigs.is_empty(), "{strange}");
        }
    }
}
