//! A network of the draft as a configuration list, which is kept like any other.

use serde_json::{Map, Value, json};

use crate::failure::{Failure, codes};
use crate::proto::draft::{DnsConfig, Ipam, NetworkRegistrationRequest, Route};

/// The key of a list that has what only the draft knows of a network.
pub(super) const DRAFT: &str = "cni.CNI";

/// Keys of the registration's `extradata`.
const LIST: &str = "config_list";
const BRIDGE: &str = "bridge";

/// The list.
///
/// # Errors
/// Codes 6 and 7 of a list that is given; 7: it has another name, or its addresses are said twice.
pub(crate) fn list_of(message: NetworkRegistrationRequest) -> Result<Vec<u8>, Failure> {
    let mut list = match message.extradata.get(LIST) {
        Some(raw) => given(raw, &message)?,
        None => built(&message)?,
    };
    let NetworkRegistrationRequest { labels, attachment_selector, isdefault, .. } = message;
    let sorted = |labels: std::collections::HashMap<String, String>| {
        Value::Object(labels.into_iter().map(|(key, value)| (key, value.into())).collect())
    };
    let said = json!({
        "labels": sorted(labels), "attachmentSelector": sorted(attachment_selector), "isDefault": isdefault
    });
    list.insert(DRAFT.to_owned(), said);
    Ok(Value::Object(list).to_string().into_bytes())
}

fn given(raw: &str, message: &NetworkRegistrationRequest) -> Result<Map<String, Value>, Failure> {
    let invalid = |why: String| Err(Failure::new(codes::INVALID_CONFIG, why));
    if message.dns.is_some() || !message.routes.is_empty() || !message.ipam.is_empty() {
        return invalid(format!("`{LIST}` says all of a network: leave `dns`, `routes` and `ipam` out"));
    }
    let list: Map<String, Value> = serde_json::from_str(raw)
        .map_err(|error| Failure::new(codes::DECODING, format!("`{LIST}`: {error}")))?;
    match list.get("name") {
        Some(name) if *name == message.name.as_str() => Ok(list),
        name => invalid(format!("`{LIST}` is of the network {name:?}, the request of `{}`", message.name)),
    }
}

/// shunt's own network with these addresses.
fn built(message: &NetworkRegistrationRequest) -> Result<Map<String, Value>, Failure> {
    if message.ipam.is_empty() {
        let why = format!("there is neither `ipam` nor `{LIST}`: the network has no addresses");
        return Err(Failure::new(codes::INVALID_CONFIG, why));
    }
    let ranges: Vec<Value> = message.ipam.iter().map(|range| json!([range_of(range)])).collect();
    let routes: Vec<Value> = message.routes.iter().map(route_of).collect();
    let mut plugin = json!({
        "type": "shunt",
        "capabilities": { "portMappings": true, "ipRanges": true, "dns": true },
        "isGateway": true,
        "isDefaultGateway": routes.is_empty(),
        "ipam": { "type": "shunt-ipam", "ranges": ranges, "routes": routes }
    });
    if let Some(bridge) = message.extradata.get(BRIDGE) {
        plugin["bridge"] = bridge.as_str().into();
    }
    if let Some(DnsConfig { servers, searches, options, .. }) = &message.dns {
        plugin["dns"] = json!({ "nameservers": servers, "search": searches, "options": options });
    }
    let list = [
        ("cniVersion", json!("1.1.0")),
        ("name", message.name.as_str().into()),
        ("plugins", json!([plugin])),
    ];
    Ok(list.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// A range as host-local's configuration has it.
pub(super) fn range_of(range: &Ipam) -> Value {
    let said = [
        ("subnet", &range.subnet),
        ("gateway", &range.gateway),
        ("rangeStart", &range.startrange),
        ("rangeEnd", &range.endrange),
    ];
    let said = said.into_iter().filter(|(_, value)| !value.is_empty());
    Value::Object(said.map(|(key, value)| (key.to_owned(), value.as_str().into())).collect())
}

fn route_of(route: &Route) -> Value {
    let mut said = json!({ "dst": route.dst });
    if !route.gateway.is_empty() {
        said["gw"] = route.gateway.as_str().into();
    }
    for (key, value) in [("mtu", route.mtu), ("scope", route.scope)] {
        if value != 0 {
            said[key] = value.into();
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: NetworkRegistrationRequest) -> Result<Value, Failure> {
        list_of(message).map(|raw| serde_json::from_slice(&raw).unwrap())
    }

    fn of_pods() -> NetworkRegistrationRequest {
        let ipam = Ipam { subnet: "10.0.0.0/24".into(), endrange: "10.0.0.99".into(), ..Ipam::default() };
        NetworkRegistrationRequest {
            name: "pods".into(),
            ipam: vec![ipam],
            attachment_selector: [("tier".to_owned(), "web".to_owned())].into(),
            ..NetworkRegistrationRequest::default()
        }
    }

    #[test]
    fn addresses_make_a_network_of_shunt_s() {
        assert_eq!(
            read(of_pods()).unwrap(),
            json!({
                "cniVersion": "1.1.0", "name": "pods",
                "plugins": [{
                    "type": "shunt", "isGateway": true, "isDefaultGateway": true,
                    "capabilities": { "portMappings": true, "ipRanges": true, "dns": true },
                    "ipam": { "type": "shunt-ipam", "routes": [],
                        "ranges": [[{ "subnet": "10.0.0.0/24", "rangeEnd": "10.0.0.99" }]] }
                }],
                "cni.CNI": { "labels": {}, "attachmentSelector": { "tier": "web" }, "isDefault": false }
            })
        );
        let route =
            Route { dst: "10.9.0.0/16".into(), gateway: "10.0.0.9".into(), mtu: 1400, ..Route::default() };
        let mut routed = of_pods();
        routed.routes = vec![route];
        routed.extradata = [("bridge".to_owned(), "br-web".to_owned())].into();
        let plugin = &read(routed).unwrap()["plugins"][0];
        assert_eq!(plugin["isDefaultGateway"], false);
        assert_eq!(plugin["bridge"], "br-web");
        assert_eq!(
            plugin["ipam"]["routes"],
            json!([{ "dst": "10.9.0.0/16", "gw": "10.0.0.9", "mtu": 1400 }])
        );
    }

    #[test]
    fn a_list_that_is_given_is_kept_as_it_is_or_refused() {
        let with = |list: &str, message: NetworkRegistrationRequest| {
            read(NetworkRegistrationRequest {
                extradata: [(LIST.to_owned(), list.to_owned())].into(),
                ..message
            })
        };
        let bare =
            NetworkRegistrationRequest { name: "pods".into(), ..NetworkRegistrationRequest::default() };
        let list = r#"{"name":"pods","plugins":[{"type":"macvlan"}]}"#;
        assert_eq!(with(list, bare.clone()).unwrap()["plugins"][0]["type"], "macvlan");
        for (list, message, code) in [
            (list, of_pods(), codes::INVALID_CONFIG),
            (r#"{"name":"other"}"#, bare.clone(), codes::INVALID_CONFIG),
            ("[]", bare.clone(), codes::DECODING),
        ] {
            assert_eq!(with(list, message).unwrap_err().code, code, "{list}");
        }
        assert_eq!(read(bare).unwrap_err().code, codes::INVALID_CONFIG);
    }
}
