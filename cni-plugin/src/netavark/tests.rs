use serde_json::Map;

use super::*;

/// A network as podman hands it to `create`, with `more` in it.
fn network(more: &Value) -> Map<String, Value> {
    let mut network = json!({
        "name": "pods",
        "id": "2f259bab93aaaaa2542ba43ef33eb990d0999ee1b9924b557b7be53c0b7a1bb9",
        "driver": "shunt",
        "subnets": [{ "subnet": "10.89.5.0/24" }, { "subnet": "fd89::/64", "gateway": "fd89::9" }],
        "ipv6_enabled": false,
        "internal": false,
        "dns_enabled": true,
        "created": "2026-01-01T00:00:00Z",
        "labels": { "a": "b" },
    });
    for (key, value) in more.as_object().unwrap() {
        network[key] = value.clone();
    }
    network.as_object().unwrap().clone()
}

/// A container on such a network.
fn exec(network_has: &Value, container_has: &Value) -> Exec {
    let mut exec = json!({
        "container_id": "c1",
        "container_name": "web",
        "port_mappings": null,
        "network": network(network_has),
        "network_options": { "interface_name": "eth0", "static_ips": ["10.89.5.7", "fd89::7"], "options": null },
    });
    for (key, value) in container_has.as_object().unwrap() {
        exec[key] = value.clone();
    }
    serde_json::from_value(exec).unwrap()
}

fn configured(network_has: &Value, container_has: &Value) -> Value {
    request::configuration(&exec(network_has, container_has)).unwrap()
}

#[test]
fn create_completes_a_network_and_keeps_what_it_does_not_know() {
    let made = create::create(network(&json!({}))).unwrap();
    assert_eq!(made["network_interface"], "sh-2f259bab93aa");
    assert_eq!(made["subnets"][0]["gateway"], "10.89.5.1");
    assert_eq!(made["subnets"][1]["gateway"], "fd89::9");
    assert_eq!((&made["ipv6_enabled"], &made["dns_enabled"]), (&json!(true), &json!(false)));
    assert_eq!(made["ipam_options"], json!({ "driver": "host-local" }));
    assert_eq!((&made["created"], &made["labels"]["a"]), (&json!("2026-01-01T00:00:00Z"), &json!("b")));
    let again = create::create(made.as_object().unwrap().clone()).unwrap();
    assert_eq!(again, made, "what is complete stays as it is");
}

#[test]
fn create_refuses_what_a_setup_would_and_names_it() {
    let options = |name: &str, value: &str| json!({ "options": { name: value } });
    for (has, named) in [
        (json!({ "subnets": null }), "--subnet"),
        (json!({ "subnets": [] }), "--subnet"),
        (json!({ "subnets": [{ "subnet": "10.89.0.0/16" }, { "subnet": "10.89.5.0/24" }] }), "overlaps"),
        (json!({ "subnets": [{ "subnet": "10.89.5.0/24", "gateway": "10.89.6.1" }] }), "10.89.6.1"),
        (json!({ "subnets": [{ "subnet": "10.89.5.0/33" }] }), "subnets[0].subnet"),
        (json!({ "ipam_options": { "driver": "dhcp" } }), "host-local or none"),
        (json!({ "ipam_options": { "driver": "none" } }), "--ipam-driver none"),
        (json!({ "network_interface": "a/b" }), "network_interface"),
        (json!({ "network_dns_servers": ["192.0.2.1"] }), "--dns"),
        (json!({ "name": "../x" }), "network name"),
        (json!({ "routes": [{ "destination": "192.0.2.0/24", "route_type": "blackhole" }] }), "blackhole"),
        (json!({ "routes": [{ "destination": "192.0.2.0/24" }] }), "no gateway"),
        (json!({ "routes": [{ "destination": "192.0.2.0/24", "gateway": "fd89::1" }] }), "two families"),
        (options("mtu", "big"), "mtu"),
        (options("mtu", "99999999"), "mtu"),
        (options("vlan", "4095"), "vlan"),
        (options("isolate", "true"), "strict"),
        (options("isolate", "maybe"), "isolate"),
        (options("mode", "unmanaged"), "mode"),
        (options("vrf", "red"), "vrf"),
        (options("outbound_addr4", "192.0.2.1"), "outbound_addr4"),
        (options("no_default_route", "perhaps"), "no_default_route"),
        (options("mtuu", "1500"), "mtuu"),
        (options("shunt.bridge", "cni0"), "shunt.bridge"),
        (options("shunt.ipspoofchk", "yes"), "ipspoofchk"),
        (options("shunt.ingressPolicy", "closed"), "ingressPolicy"),
    ] {
        let error = create::create(network(&has)).unwrap_err().text();
        assert!(error.contains(named), "{has}: {error}");
    }
}

#[test]
fn a_setup_is_an_add_with_the_addresses_that_netavark_gave() {
    let config = configured(&json!({}), &json!({}));
    assert_eq!(config["bridge"], "sh-2f259bab93aa");
    assert_eq!((&config["isGateway"], &config["ipMasq"]), (&json!(true), &json!(true)));
    let given = &config["prevResult"];
    assert_eq!(given["ips"][0], json!({ "address": "10.89.5.7/24", "gateway": "10.89.5.1" }));
    assert_eq!(given["ips"][1], json!({ "address": "fd89::7/64", "gateway": "fd89::9" }));
    let routes = json!([
        { "dst": "0.0.0.0/0", "gw": "10.89.5.1", "priority": 100 },
        { "dst": "::/0", "gw": "fd89::9", "priority": 100 },
    ]);
    assert_eq!(given["routes"], routes);
    assert_eq!(exec(&json!({}), &json!({})).arguments(), "IgnoreUnknown=1;K8S_POD_NAME=web");
}

#[test]
fn options_are_keys() {
    let options = json!({ "options": {
        "mtu": "1400", "vlan": "7", "metric": "50",
        "shunt.ipspoofchk": "true", "shunt.uplink": "eth1", "shunt.stormControl": "{\"broadcast\": 5}",
    } });
    let config = configured(&options, &json!({}));
    assert_eq!((&config["mtu"], &config["vlan"]), (&json!(1400), &json!(7)));
    assert_eq!((&config["ingressPolicy"], &config["ipspoofchk"]), (&json!("same-bridge"), &json!(true)));
    assert_eq!((&config["uplink"], &config["stormControl"]["broadcast"]), (&json!("eth1"), &json!(5)));
    assert_eq!(config["prevResult"]["routes"][0]["priority"], 50);
    let open = configured(&json!({ "options": { "isolate": "false" } }), &json!({}));
    assert_eq!(open["ingressPolicy"], Value::Null);
    let apart = json!({ "options": { "no_default_route": "true" },
        "routes": [{ "destination": "192.0.2.0/24", "gateway": "10.89.5.3", "metric": 9 }] });
    let routes = configured(&apart, &json!({}))["prevResult"]["routes"].clone();
    assert_eq!(routes, json!([{ "dst": "192.0.2.0/24", "gw": "10.89.5.3", "priority": 9 }]));
}

#[test]
fn an_internal_network_has_no_way_out_and_no_host_ports() {
    let published = json!({ "port_mappings": [{ "container_port": 80, "host_port": 8080 }] });
    let config = configured(&json!({ "internal": true }), &published);
    assert_eq!((&config["isGateway"], &config["ipMasq"]), (&json!(true), &json!(false)), "fd89::9 is given");
    let bare =
        json!({ "internal": true, "subnets": [{ "subnet": "10.89.5.0/24" }, { "subnet": "fd89::/64" }] });
    assert_eq!(configured(&bare, &published)["isGateway"], false);
    let made = create::create(network(&bare)).unwrap();
    assert_eq!(made["subnets"][0]["gateway"], Value::Null, "as netavark's bridge has it");
    assert_eq!(config["prevResult"]["routes"], Value::Null);
    assert_eq!(config["runtimeConfig"]["portMappings"], Value::Null);
}

#[test]
fn a_network_without_ipam_is_of_layer_two() {
    let none = json!({ "ipam_options": { "driver": "none" }, "subnets": null });
    let own = json!({ "network_options": { "interface_name": "eth0" } });
    let config = configured(&none, &own);
    assert_eq!((&config["isGateway"], &config["prevResult"]), (&json!(false), &Value::Null));
    create::create(network(&none)).unwrap();
}

#[test]
fn ranges_and_several_protocols_are_mappings_of_one_port() {
    let published = json!({ "port_mappings": [
        { "container_port": 80, "host_port": 8080, "range": 2, "protocol": "tcp,udp", "host_ip": "127.0.0.1" },
        { "container_port": 53, "host_port": 53, "range": 0, "protocol": "", "host_ip": "" },
    ] });
    let mappings = configured(&json!({}), &published)["runtimeConfig"]["portMappings"].clone();
    let told: Vec<_> = mappings.as_array().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 5, "{told:?}");
    assert_eq!(
        mappings[3],
        json!({ "hostPort": 8081, "containerPort": 81, "protocol": "udp", "hostIP": "127.0.0.1" })
    );
    for beyond in [
        json!({ "container_port": 80, "host_port": 65535, "range": 2 }),
        json!({ "container_port": 65535, "host_port": 80, "range": 2 }),
    ] {
        let error = request::configuration(&exec(&json!({}), &json!({ "port_mappings": [beyond] })));
        assert!(error.unwrap_err().text().contains("beyond 65535"));
    }
}

#[test]
fn addresses_of_no_subnet_and_options_of_a_container_are_refused() {
    let own = |options: Value| json!({ "network_options": options });
    for (has, named) in [
        (own(json!({ "interface_name": "eth0" })), "no address was given"),
        (own(json!({ "interface_name": "eth0", "static_ips": ["192.0.2.7"] })), "192.0.2.7"),
        (
            own(json!({ "interface_name": "eth0", "static_ips": ["10.89.5.7"],
                "options": { "host_interface_name": "veth1" } })),
            "host_interface_name",
        ),
    ] {
        let error = request::configuration(&exec(&json!({}), &has)).unwrap_err().text();
        assert!(error.contains(named), "{has}: {error}");
    }
}

/// Runs the plugin as netavark does.
fn answered(words: &[&str], input: &Value) -> Option<Result<String, String>> {
    let words: Vec<_> = words.iter().map(OsString::from).collect();
    run(Path::new("/usr/libexec/netavark/shunt"), &words, |_| None, input.to_string().as_bytes())
}

#[test]
fn only_netavarks_words_are_answered_and_errors_are_its_json() {
    assert!(answered(&[], &json!({})).is_none(), "a CNI runtime passes none");
    assert!(answered(&["--version"], &json!({})).is_none());
    let Some(Ok(info)) = answered(&["info"], &Value::Null) else { panic!("info") };
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(
        (&info["api_version"], &info["version"]),
        (&json!("1.0.0"), &json!(env!("CARGO_PKG_VERSION")))
    );
    for (words, input, named) in [
        (&["setup"][..], json!({}), "container_id"),
        (&["create"], json!([]), "map"),
        (&["create"], json!({ "name": 5 }), "name"),
        (&["teardown", "/run/netns/x"], json!("x"), "struct Exec"),
    ] {
        let Some(Err(text)) = answered(words, &input) else { panic!("{words:?}") };
        let error: Value = serde_json::from_str(&text).unwrap();
        assert!(error["error"].as_str().unwrap().contains(named), "{words:?}: {text}");
    }
}

#[test]
fn a_teardown_is_judged_by_nothing_but_its_names() {
    let odd = json!({ "options": { "mtu": "big", "shunt.agentSocket": "/run/a.sock" }, "subnets": null });
    let config = request::minimum(&exec(&odd, &json!({})));
    assert_eq!(
        config,
        json!({ "cniVersion": "1.1.0", "name": "pods", "type": "shunt", "bridge": "sh-2f259bab93aa", "agentSocket": "/run/a.sock" })
    );
}
