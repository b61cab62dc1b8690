//! A kernel that cannot open host ports (no nf_tables NAT): an ADD succeeds all the same, the programs open them, and `status` says why. The kernel is
//! asked again.

use std::time::Duration;

use nix::errno::Errno;
use shunt_agent::Agent;
use shunt_agent::config::{Config, Filters};
use shunt_agent::failpoints::{self, Failpoint, Fault, Plan};
use shunt_agent_api::{BridgePort, Reply, Request};
use shunt_lab::{Lab, Namespace, run};

use crate::MOST;
use crate::asked::Asked as _;
use crate::containers::{BRIDGE, ip, port, remove};
use crate::steps::RICH;
use crate::world::config;

fn warnings(agent: &mut Agent) -> Vec<String> {
    match agent.answer(Request::Status) {
        Reply::Status(status) => status.warnings,
        other => panic!("{other:?}"),
    }
}

fn is_said(agent: &mut Agent) -> bool {
    warnings(agent).iter().any(|warning| warning.contains("the kernel cannot open host ports"))
}

/// Whether the kernel opens the host port.
fn is_led() -> bool {
    run("nft", &["list", "ruleset"]).unwrap().contains("dnat")
}

/// A container whose only need of nf_tables is its host port.
fn published(inside: &Namespace) -> BridgePort {
    BridgePort { masquerade: Vec::new(), ..port(RICH, inside) }
}

/// Has one call of an ADD after the other answered as by a kernel without netfilter's netlink, until that is the call that opens host ports.
fn until_refused(agent: &mut Agent, inside: &Namespace) {
    for after in 0..MOST {
        let wanted = published(inside);
        let fault = Fault::Refused(Errno::EPROTONOSUPPORT);
        failpoints::plan(Plan { failpoint: Some(Failpoint::Netlink), after, fault });
        let outcome = agent.attach_as(wanted, true);
        assert!(failpoints::recall(), "no call of an ADD is the one that opens host ports");
        if outcome.is_ok() && is_said(agent) {
            return;
        }
        agent.collect("net", &[]);
        remove(RICH);
    }
    panic!("an ADD has more than {MOST} calls");
}

#[test]
fn an_add_succeeds_where_the_kernel_cannot_open_host_ports_and_the_kernel_is_asked_again() {
    let lab = Lab::new().unwrap();
    let [node, inside] = ["node", "inside"].map(|name| lab.namespace(name).unwrap());
    let config = Config { filters: Filters::Heed, filter_host_ports: true, ..config(&lab) };
    let work = || {
        ip(&["link", "add", BRIDGE, "type", "bridge"]);
        ip(&["link", "set", BRIDGE, "up"]);
        let mut agent = Agent::open(&config).unwrap();
        until_refused(&mut agent, &inside);
        assert!(!is_led(), "the programs open it");
        failpoints::advance(Duration::from_secs(60));
        agent.tick();
        assert!(is_led(), "the kernel can by now: {:?}", warnings(&mut agent));
        assert!(!is_said(&mut agent));
    };
    node.enter(work).unwrap();
}
