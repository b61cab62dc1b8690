//! A VLAN's gateway that is made and deleted while calls fail and agents die.

use std::time::Duration;

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use shunt_agent::Agent;
use shunt_agent::config::Config;
use shunt_agent::failpoints::{self, Fault, Plan};
use shunt_agent_api::{
    AttachmentKey, Bandwidth, BridgePort, Interface, Reply, Request, Restrictions, Service, VlanGateway,
    Vlans,
};
use shunt_lab::{Lab, run};

use crate::MOST;
use crate::asked::Asked as _;
use crate::world::config;

/// Which of an agent's deaths are tried: starting another one takes its time.
const EVERY: usize = 4;

fn key() -> AttachmentKey {
    AttachmentKey { network: "net".into(), container: "c".into(), ifname: "eth0".into() }
}

fn interface(name: &str) -> Interface {
    Interface { name: name.to_owned(), index: if_nametoindex(name).unwrap() }
}

/// The container's port in VLAN 10, whose link is made if there is none.
fn port() -> BridgePort {
    if if_nametoindex("veth0").is_err() {
        run("ip", &["link", "add", "veth0", "type", "veth", "peer", "name", "peer0"]).unwrap();
    }
    let addresses = vec!["10.77.0.1/24".to_owned(), "fd77::1/64".to_owned()];
    let gateway = VlanGateway { addresses, ..VlanGateway::default() };
    let vlans = Vlans { untagged: Some(10), ..Vlans::default() };
    BridgePort {
        key: key(),
        bridge: interface("br0"),
        host: interface("veth0"),
        mac: "02:00:00:00:00:01".into(),
        ips: Vec::new(),
        mtu: 1500,
        netns: None,
        peer_up: false,
        masquerade: Vec::new(),
        unmasqueraded: Vec::new(),
        restrictions: Restrictions { vlans: Some(vlans), ..Restrictions::default() },
        mappings: Vec::new(),
        bandwidth: Bandwidth::default(),
        service: Service { vlan_gateway: Some(gateway), ..Service::default() },
        lease_dir: None,
        vlan: None,
        pod: None,
    }
}

fn attached(agent: &mut Agent) -> bool {
    matches!(agent.answer(Request::Ports), Reply::Ports(ports) if !ports.is_empty())
}

fn assert_whole(agent: &mut Agent, when: &str) {
    let Reply::Audited(audit) = agent.answer(Request::Audit) else { panic!("{when}: no audit") };
    assert!(audit.consistent, "{when}: {:?}", audit.findings);
    let shown = run("ip", &["-brief", "address", "show", "dev", "br0.10"]).unwrap();
    assert!(shown.contains(" UP ") && shown.contains("10.77.0.1/24 "), "{when}: {shown}");
    assert!(shown.contains("fd77::1/64") && shown.contains("fe80::"), "{when}: {shown}");
}

/// Neither link nor entry.
fn assert_gone(agent: &mut Agent, when: &str) {
    assert_unlinked(agent, when);
    let Reply::Fdb(stations) = agent.answer(Request::Fdb) else { panic!("{when}: no FDB") };
    assert!(stations.is_empty(), "{when}: {stations:?}");
}

fn assert_unlinked(agent: &mut Agent, when: &str) {
    assert!(!attached(agent), "{when}");
    let links = run("ip", &["-brief", "link", "show"]).unwrap();
    assert!(!links.contains("br0.10") && !links.contains("gw"), "{when}: {links}");
}

fn within(work: impl FnOnce(&Config) + Send) {
    let lab = Lab::new().unwrap();
    let node = lab.namespace("node").unwrap();
    for text in ["link add br0 address 02:00:00:00:0b:00 type bridge", "link set br0 up"] {
        node.command("ip", &text.split(' ').collect::<Vec<_>>()).unwrap();
    }
    node.enter(|| work(&config(&lab))).unwrap();
}

#[test]
fn a_gateway_of_which_any_call_is_refused_is_whole_or_gone_and_works_the_next_time() {
    within(|config| {
        let mut agent = Agent::open(config).unwrap();
        let mut refused = 0;
        for after in 0..MOST {
            let port = port();
            let when = format!("refused after {after}");
            failpoints::plan(Plan { failpoint: None, after, fault: Fault::Refused(Errno::EIO) });
            let outcome = agent.attach(port.clone());
            let struck = failpoints::recall();
            match &outcome {
                Ok(_) => assert_whole(&mut agent, &when),
                Err(_) => assert_gone(&mut agent, &when),
            }
            refused += u32::from(outcome.is_err());
            agent.attach(port).unwrap();
            assert_whole(&mut agent, &when);
            agent.detach(&key(), None);
            assert_gone(&mut agent, &when);
            if !struck {
                assert!(refused > 20, "{refused}");
                return;
            }
        }
        panic!("a change has more than {MOST} calls");
    });
}

#[test]
fn a_gateway_over_which_an_agent_dies_is_finished_or_removed_by_the_next() {
    within(|config| {
        let (mut finished, mut removed) = (0, 0);
        for after in (0..MOST).step_by(EVERY) {
            let mut agent = Agent::open(config).unwrap();
            let port = port();
            let when = format!("dead after {after}");
            let attaches = after / EVERY as u32 % 3 != 2;
            if !attaches {
                agent.attach(port.clone()).unwrap();
            }
            failpoints::plan(Plan { failpoint: None, after, fault: Fault::Death });
            if attaches {
                agent.attach(port).unwrap_or_default();
            } else {
                agent.detach(&key(), None);
            }
            drop(agent);
            let died = failpoints::recall();
            // The plugin takes the link away when its ADD has failed; it may be killed, too.
            if after / EVERY as u32 % 2 == 1 {
                run("ip", &["link", "delete", "veth0"]).unwrap();
            }
            let mut agent = Agent::open(config).unwrap();
            for _ in 0..2 {
                failpoints::advance(Duration::from_secs(2));
                agent.tick();
            }
            if attached(&mut agent) {
                assert_whole(&mut agent, &when);
                finished += 1;
                agent.detach(&key(), None);
            } else {
                removed += 1;
            }
            assert_gone(&mut agent, &when);
            if !died && attaches {
                assert!(finished > 3 && removed > 3, "{finished} {removed}");
                return;
            }
        }
        panic!("a change has more than {MOST} calls");
    });
}
