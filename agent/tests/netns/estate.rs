//! A node whose interface `up0` has addresses and routes of every kind, and what becomes of them.

use serde_json::Value;
use shunt_lab::{Echo, Namespace};

/// The node's address on the wire.
pub(crate) const NODE: &str = "192.0.2.9";

/// Somebody beyond the router, by whom only a default route leads.
pub(crate) const FAR: &str = "203.0.113.7";
pub(crate) const FAR6: &str = "2001:db8:f::7";

fn ip(namespace: &Namespace, text: &str) {
    namespace.command("ip", &text.split(' ').collect::<Vec<_>>()).unwrap();
}

/// Of every kind something.
pub(crate) const MUCH: [&str; 19] = [
    "address add 192.0.2.9/24 brd + dev up0 label up0:one",
    "address add 192.0.2.10/24 brd + dev up0",
    "address add 198.51.100.9/25 dev up0 metric 300",
    "address add 198.18.0.9/24 dev up0 noprefixroute",
    "address add 198.19.0.9 peer 198.19.0.1/32 dev up0",
    "address add 192.0.2.200/24 dev up0 valid_lft 5000 preferred_lft 4000",
    "-6 address add 2001:db8::9/64 dev up0 nodad",
    "-6 address add 2001:db8::a/64 dev up0",
    "-6 address add 2001:db8:0:1::9/64 dev up0 valid_lft 5000 preferred_lft 4000",
    "route add default via 192.0.2.1 dev up0 metric 50 mtu 1400",
    "route add default via 198.51.100.1 dev up0 metric 60",
    "route add 198.18.0.0/24 dev up0 proto static scope link src 198.18.0.9 metric 7",
    "route add 203.0.113.128/25 via 192.0.2.1 dev up0 table 77 src 192.0.2.10 proto bird",
    "route add 203.0.113.64/26 via 192.168.99.1 dev up0 onlink",
    "route add 203.0.113.32/27 nexthop via 192.0.2.1 dev up0 weight 3 nexthop via 10.99.0.1 dev side0",
    "-6 route add default via 2001:db8::1 dev up0 metric 70",
    "-6 route add 2001:db8:a::/48 via fe80::77 dev up0 metric 80 mtu 1300",
    "-6 route add 2001:db8:b::/48 metric 9 nexthop via 2001:db8::1 dev up0 weight 2 nexthop via fd99::2 dev side0",
    "neighbor add 192.0.2.222 lladdr 02:00:00:00:02:22 dev up0 nud permanent",
];

/// Gives `up0` an estate, and the world beyond it a router and somebody behind it.
pub(crate) fn settle(node: &Namespace, outside: &Namespace, estate: &[&str]) {
    for text in [
        "address add 192.0.2.1/24 dev eth0",
        "address add 198.51.100.1/25 dev eth0",
        "address add 203.0.113.7/32 dev lo",
        "-6 address add 2001:db8::1/64 dev eth0 nodad",
        "-6 address add 2001:db8:0:1::1/64 dev eth0 nodad",
        "-6 address add 2001:db8:f::7/128 dev lo nodad",
        "link set lo up",
    ] {
        ip(outside, text);
    }
    estate.iter().for_each(|text| ip(node, text));
}

/// Another interface of the node's, with the other of two ways.
pub(crate) fn side(node: &Namespace, other: &Namespace) {
    node.pair("side0", other, "side1").unwrap();
    ip(node, "address add 10.99.0.2/24 dev side0");
    ip(node, "-6 address add fd99::1/64 dev side0 nodad");
}

/// Servers of the world's, and one of the node's own.
pub(crate) fn echoes(node: &Namespace, outside: &Namespace) -> [Echo; 3] {
    let listen =
        |namespace, address: &str, port| Echo::listen(namespace, address.parse().unwrap(), port).unwrap();
    [listen(outside, FAR, 7301), listen(outside, FAR6, 7302), listen(node, NODE, 7303)]
}

/// Everything that an interface has, a line each, as if its name were `DEV`. Lifetimes, which run out meanwhile, are only
/// there or not.
pub(crate) fn estate(node: &Namespace, device: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for link in list(node, &["address", "show", "dev", device]) {
        for address in link["addr_info"].as_array().cloned().unwrap_or_default() {
            // What the kernel gives itself is no estate, but comes along; it differs by the order of things.
            if address["scope"] != "link" {
                lines.push(said("address", device, address));
            }
        }
    }
    for family in ["-4", "-6"] {
        for route in list(node, &[family, "-details", "route", "show", "table", "all"]) {
            let has = |route: &Value| route["dev"] == device;
            let ways = route["nexthops"].as_array().is_some_and(|ways| ways.iter().any(has));
            let dst = route["dst"].as_str().unwrap_or_default();
            // Of the kernel's own making for whatever interface there is.
            let own = route["table"] == "local" || dst.starts_with("fe80::") || dst.starts_with("ff00::");
            if (has(&route) || ways) && !own {
                lines.push(said("route", device, route));
            }
        }
    }
    for neighbour in list(node, &["neighbor", "show", "dev", device, "nud", "permanent"]) {
        lines.push(said("neighbour", device, neighbour));
    }
    lines.sort();
    lines
}

fn said(what: &str, device: &str, value: Value) -> String {
    let mut value: Value = serde_json::from_str(&value.to_string().replace(device, "DEV")).unwrap();
    if let Some(fields) = value.as_object_mut() {
        for lifetime in ["valid_life_time", "preferred_life_time", "expires"] {
            if fields.get(lifetime).and_then(Value::as_u64).is_some_and(|left| left != u64::from(u32::MAX)) {
                fields.insert(lifetime.to_owned(), "finite".into());
            }
        }
        // A way that is down is told with that; it comes and goes with the carrier.
        fields.remove("flags").map(|flags| fields.insert("flags".into(), without_state(&flags)));
        fields.remove("secondary");
        fields.remove("tentative");
        // Of equal ways the first was the first that came.
        if let Some(ways) = fields.get_mut("nexthops").and_then(Value::as_array_mut) {
            ways.sort_by_key(ToString::to_string);
        }
    }
    format!("{what} {value}")
}

fn without_state(flags: &Value) -> Value {
    let flags = flags.as_array().into_iter().flatten();
    flags
        .filter(|flag| !["linkdown", "dead", "permanent"].contains(&flag.as_str().unwrap_or_default()))
        .cloned()
        .collect()
}

/// Nothing where there is no such interface.
fn list(node: &Namespace, arguments: &[&str]) -> Vec<Value> {
    let text = node.command("ip", &[&["-json"], arguments].concat()).unwrap_or_default();
    if text.trim().is_empty() { Vec::new() } else { serde_json::from_str(&text).unwrap() }
}

/// The Ethernet address of an interface.
pub(crate) fn mac(node: &Namespace, device: &str) -> String {
    list(node, &["link", "show", "dev", device])[0]["address"].as_str().unwrap_or_default().to_owned()
}
