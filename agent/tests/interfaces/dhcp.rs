//! The address of a VLAN interface comes from a DHCP server in the VLAN.

use serde_json::json;

use crate::dhcp_service::{ANSWER, Client, Server};
use crate::stage::{By, Stage};

const VID: u16 = 20;

/// The server's address.
const AT: &str = "10.99.0.1";

#[test]
fn interfaces_by_the_programs_lease_addresses_and_give_them_back() {
    lease_and_give_back(By::Programs);
}

#[test]
fn interfaces_by_the_kernel_lease_addresses_and_give_them_back() {
    lease_and_give_back(By::Kernel);
}

fn lease_and_give_back(by: By) {
    let Some(stage) = Stage::set_by(by) else { return };
    let Some(client) = Client::start(&stage.lab, &stage.here, ANSWER) else { return };
    let fixed = json!({ "type": "static", "addresses": [{ "address": format!("{AT}/24") }] });
    let reference = "/usr/lib/cni/static";
    std::os::unix::fs::symlink(reference, stage.there.plugins().join("static")).unwrap();
    let serving = stage.network(&stage.there, VID, by).with("ipam", fixed);
    let beyond = stage.start(&stage.there, &serving, "server");
    let server = Server::start(&stage.lab, beyond.namespace(), AT, ["10.99.0.100", "10.99.0.103"]);
    let network = stage.network(&stage.here, VID, by).with("ipam", client.ipam());
    let one = stage.start(&stage.here, &network, "one");
    server.assert_leased(&one.addresses());
    server.wait_for_leases(1);
    stage.assert_served(&one, &beyond, AT.parse().unwrap());
    one.delete(&stage.here, &network).unwrap();
    server.wait_for_leases(0);
    assert_eq!(stage.left(), [""; 0]);
}
