//! An attachment that is given its addresses in place.

use std::net::IpAddr;

use shunt_agent_api::{
    AgentError, Attached, BridgePort, ErrorKind, EventKind, PortMapping, Protocol, Reply, Request,
    Restrictions, Service, VlanGateway, Vlans,
};

use crate::events::Subscriber;
use crate::rig::{Rig, eventually};

/// The same without addresses, as it is attached while an IPAM is asked.
fn unaddressed(port: &BridgePort) -> BridgePort {
    BridgePort { ips: Vec::new(), masquerade: Vec::new(), mappings: Vec::new(), ..port.clone() }
}

fn address(rig: &Rig, port: &BridgePort) -> Result<Attached, AgentError> {
    match rig.ask(Request::Address { port: port.clone() })? {
        Reply::Attached(attached) => Ok(attached),
        other => panic!("{other:?}"),
    }
}

fn mapping() -> PortMapping {
    PortMapping {
        protocol: Protocol::Tcp,
        host_ip: None,
        host_port: 8080,
        container_port: 80,
        masquerade: false,
        keeps_source: false,
    }
}

#[test]
fn an_attachment_is_given_its_addresses_under_its_programs() {
    for mode in ["tcx", "clsact"] {
        let mut rig = Rig::start(mode);
        let other = rig.container(2);
        rig.attach(&other).unwrap();
        let restrictions = Restrictions { ip_check: true, ..Restrictions::default() };
        let port = BridgePort {
            restrictions,
            masquerade: vec!["10.88.0.0/24".to_owned()],
            mappings: vec![mapping()],
            ..rig.container(3)
        };
        let before = rig.attach(&unaddressed(&port)).unwrap();
        let subscriber = Subscriber::new(&rig);
        let after = address(&rig, &port).unwrap();
        assert!(
            before.programs.iter().all(|program| after.programs.contains(program)),
            "{before:?} {after:?}"
        );
        rig.check(&port).unwrap();
        assert_eq!(address(&rig, &port).unwrap(), after, "once more changes nothing");
        assert_eq!(rig.ports()[1].ips, port.ips);
        // The source guard knows the address.
        rig.exchange(1, 0, 3);
        assert_eq!(rig.detach(&port), Some(port.clone()));
        assert_eq!(subscriber.hear(EventKind::Detach).key, Some(port.key), "it was attached once");
        rig.detach(&other);
        rig.assert_empty();
    }
}

#[test]
fn addresses_that_are_replaced_are_nobodys_and_those_that_are_given_outlive_the_agent() {
    let mut rig = Rig::start("auto");
    let first = rig.container(2);
    rig.attach(&first).unwrap();
    let second = BridgePort { ips: vec!["10.88.0.77".parse().unwrap()], ..first.clone() };
    address(&rig, &second).unwrap();
    let successor = BridgePort { ips: first.ips.clone(), ..rig.container(3) };
    rig.attach(&successor).unwrap();
    rig.kill();
    rig.run("auto");
    rig.check(&second).unwrap();
    rig.check(&successor).unwrap();
    rig.detach(&successor);
    rig.detach(&second);
    rig.assert_empty();
}

#[test]
fn addresses_that_are_refused_leave_what_was_in_force() {
    let mut rig = Rig::start("auto");
    let neighbour = BridgePort { mappings: vec![mapping()], ..rig.container(2) };
    rig.attach(&neighbour).unwrap();
    let port = rig.container(3);
    let plain = unaddressed(&port);
    rig.attach(&plain).unwrap();
    let own: IpAddr = "10.88.0.1".parse().unwrap();
    for (spoiled, kind) in [
        (BridgePort { ips: neighbour.ips.clone(), ..port.clone() }, ErrorKind::Exists),
        (BridgePort { ips: vec![own], ..port.clone() }, ErrorKind::Exists),
        (BridgePort { mtu: 1400, ..port.clone() }, ErrorKind::Exists),
        (BridgePort { mappings: vec![mapping()], ..port.clone() }, ErrorKind::PortTaken),
        (BridgePort { ips: vec![IpAddr::from([127, 0, 0, 1])], ..port.clone() }, ErrorKind::Malformed),
    ] {
        let refusal = address(&rig, &spoiled).unwrap_err();
        assert_eq!(refusal.kind, kind, "{refusal}");
        rig.check(&plain).unwrap();
    }
    let unknown = rig.container(4);
    assert_eq!(address(&rig, &unknown).unwrap_err().kind, ErrorKind::NotAttached);
    address(&rig, &port).unwrap();
    rig.check(&port).unwrap();
}

#[test]
fn a_gateway_in_a_vlan_comes_with_the_addresses_and_goes_with_them() {
    let mut rig = Rig::start("auto");
    let vlans = Some(Vlans { untagged: Some(10), ..Vlans::default() });
    let gateway = VlanGateway { addresses: vec!["10.88.0.254/24".to_owned()], ..VlanGateway::default() };
    let port = BridgePort {
        restrictions: Restrictions { vlans, ..Restrictions::default() },
        service: Service { vlan_gateway: Some(gateway), ..Service::default() },
        ..rig.container(2)
    };
    let plain = BridgePort { service: Service::default(), ..unaddressed(&port) };
    rig.attach(&plain).unwrap();
    let shown = |rig: &Rig| rig.ip(&["-oneline", "address", "show"]).contains("10.88.0.254/24");
    assert!(!shown(&rig));
    address(&rig, &port).unwrap();
    assert!(shown(&rig));
    // No plugin has made the bridge's port: the agent finds it without its flags, as one that was harmed.
    eventually("all of it is as it should be", || rig.check(&port).is_ok());
    address(&rig, &plain).unwrap();
    assert!(!shown(&rig));
    rig.detach(&plain);
    rig.assert_empty();
}
