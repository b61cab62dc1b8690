//! podman with its netavark backend, and the real netavark. Debian's podman 4.3 does not say where plugins are, as podman 5 does: a script says it
//! in its place. It cannot make a network of a plugin's either, so there is one as `podman network create` would keep it.

use std::net::SocketAddr;

use serde_json::json;
use shunt_lab::{Conversation, Lacking, Protocol, skip};

use crate::podman::Podman;
use crate::site::{GATEWAY, NETWORK};

const SETTINGS: &str = r#"
helper_binaries_dir = ["/run/helpers"]
[network]
network_backend = "netavark"
"#;

const HOST_PORT: u16 = 8080;

/// Puts netavark, told of our plugin's directory, where podman looks for it.
fn prepare(netavark: &str) -> Option<Podman> {
    let podman = Podman::prepare(SETTINGS)?;
    let host = &podman.site.host;
    let network = json!({
        "name": NETWORK, "id": "2f".repeat(32), "driver": "shunt", "network_interface": "podman1",
        "created": "2026-01-01T00:00:00Z", "subnets": [{ "subnet": "10.88.0.0/24", "gateway": GATEWAY }],
        "ipv6_enabled": false, "internal": false, "dns_enabled": false, "ipam_options": { "driver": "host-local" },
    });
    host.run(&["mkdir", "-p", "/run/helpers", "/etc/containers/networks"]);
    host.write(&format!("/etc/containers/networks/{NETWORK}.json"), &network.to_string());
    let script = format!(
        "#!/bin/sh\nexec {netavark} --plugin-directory /opt/cni/bin --firewall-driver nftables \"$@\"\n"
    );
    host.write("/run/helpers/netavark", &script);
    host.run(&["chmod", "755", "/run/helpers/netavark"]);
    Some(podman)
}

#[test]
fn podmans_containers_are_on_a_network_of_netavarks_plugin() {
    let Some(netavark) = std::env::var("SHUNT_NETAVARK").ok() else {
        return skip(Lacking::Package("netavark (cargo xtask setup builds it, SHUNT_NETAVARK names it)"));
    };
    let Some(podman) = prepare(&netavark) else { return };
    let site = &podman.site;
    podman.run("first", &["--rm", "--publish", "8081:7000"], &["ip address show eth0"]);
    let before = site.inventory();

    let server = podman.serve("server", &["--publish", &format!("{HOST_PORT}:7000")]);
    let client = podman.serve("client", &[]);
    let port = site.port(&server);
    assert_eq!((&*port.network, &*port.pod), (NETWORK, "server"));
    podman.talk("client", &site.address(&server));
    for id in [&server, &client] {
        site.assert_fast(id);
    }
    let published = SocketAddr::new(GATEWAY.parse().unwrap(), HOST_PORT);
    let talk = Conversation::open(site.node.namespace(), Protocol::Tcp, published);
    talk.unwrap().chat(20, 1000).unwrap();

    podman.remove("server");
    podman.remove("client");
    site.assert_clean(&before);
    podman.site.leave();
}
