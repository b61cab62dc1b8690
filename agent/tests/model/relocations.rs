//! The node's own addresses on their way to a bridge and back, while calls fail and agents die at every one of them.

use nix::errno::Errno;
use shunt_agent::Agent;
use shunt_agent::config::Config;
use shunt_agent::failpoints::{self, Failpoint, Fault, Plan};
use shunt_agent_api::{
    AttachmentKey, Bandwidth, BridgePort, BridgeUplink, Interface, Reply, Request, Restrictions, Service,
};
use shunt_lab::{Conversation, Echo, Lab, Namespace, Protocol, run};

use crate::MOST;
use crate::asked::Asked as _;
use crate::estate::{echoes, estate, mac, settle};
use crate::world::config;

/// What most nodes have.
const LITTLE: [&str; 5] = [
    "address add 192.0.2.9/24 brd + dev up0",
    "-6 address add 2001:db8::9/64 dev up0 nodad",
    "route add default via 192.0.2.1 dev up0",
    "-6 route add default via 2001:db8::1 dev up0",
    "neighbor add 192.0.2.222 lladdr 02:00:00:00:02:22 dev up0 nud permanent",
];

struct Scene {
    config: Config,
    node: Namespace,
    outside: Namespace,
    echoes: [Echo; 3],
    before: Vec<String>,
    /// The bridge's own address.
    mac: String,
    _lab: Lab,
}

impl Scene {
    fn set() -> Self {
        let lab = Lab::new().unwrap();
        let [node, outside] = ["node", "outside"].map(|name| lab.namespace(name).unwrap());
        node.pair("up0", &outside, "eth0").unwrap();
        settle(&node, &outside, &LITTLE);
        for text in ["link add br0 address 02:00:00:00:0b:00 type bridge", "link set br0 up"] {
            node.command("ip", &text.split(' ').collect::<Vec<_>>()).unwrap();
        }
        let echoes = echoes(&node, &outside);
        let (before, mac) = (estate(&node, "up0"), mac(&node, "br0"));
        Self { config: config(&lab), node, outside, echoes, before, mac, _lab: lab }
    }

    /// From the node and to it.
    fn assert_reachable(&self, when: &str) {
        let ways =
            [(&self.node, &self.echoes[0]), (&self.node, &self.echoes[1]), (&self.outside, &self.echoes[2])];
        for (from, echo) in ways {
            Conversation::open(from, Protocol::Tcp, echo.address())
                .and_then(|mut talk| talk.say(100))
                .unwrap_or_else(|error| panic!("{when}: {error:#}\n{}", self.state()));
        }
    }

    fn state(&self) -> String {
        let macs = ["up0", "br0"].map(|link| mac(&self.node, link));
        let written = self.is_written_down();
        let estates = ["up0", "br0"].map(|link| estate(&self.node, link));
        format!("up0 {:#?}\nbr0 {:#?}\n{macs:?} written {written}", estates[0], estates[1])
    }

    fn is_home(&self) -> bool {
        let found = (estate(&self.node, "up0"), estate(&self.node, "br0"), mac(&self.node, "br0"));
        found == (self.before.clone(), Vec::new(), self.mac.clone()) && !self.is_written_down()
    }

    fn is_moved(&self) -> bool {
        estate(&self.node, "br0") == self.before
            && estate(&self.node, "up0").is_empty()
            && mac(&self.node, "br0") == mac(&self.node, "up0")
            && self.is_written_down()
    }

    fn is_written_down(&self) -> bool {
        std::fs::read_dir(self.config.state_dir.join("relocations")).is_ok_and(|entries| entries.count() == 1)
    }

    fn open(&self) -> Agent {
        Agent::open(&self.config).unwrap()
    }
}

fn key() -> AttachmentKey {
    AttachmentKey { network: "net".into(), container: "c".into(), ifname: "eth0".into() }
}

fn interface(name: &str) -> Interface {
    Interface { name: name.to_owned(), index: nix::net::if_::if_nametoindex(name).unwrap() }
}

/// The container's port, whose link is made if there is none.
fn port() -> BridgePort {
    if nix::net::if_::if_nametoindex("veth0").is_err() {
        run("ip", &["link", "add", "veth0", "type", "veth", "peer", "name", "peer0"]).unwrap();
    }
    let uplink = BridgeUplink { name: "up0".into(), move_address: true, kept: false };
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
        restrictions: Restrictions::default(),
        mappings: Vec::new(),
        bandwidth: Bandwidth::default(),
        service: Service { uplink: Some(uplink), ..Service::default() },
        lease_dir: None,
        vlan: None,
        pod: None,
    }
}

fn attached(agent: &mut Agent) -> bool {
    matches!(agent.answer(Request::Ports), Reply::Ports(ports) if !ports.is_empty())
}

fn plan(after: u32, fault: Fault, failpoint: Option<Failpoint>) {
    failpoints::plan(Plan { failpoint, after, fault });
}

fn within(work: impl FnOnce(&Scene) + Send) {
    let scene = Scene::set();
    scene.node.enter(|| work(&scene)).unwrap();
}

#[test]
fn a_move_of_which_any_call_is_refused_is_taken_back_wholly_and_works_the_next_time() {
    within(|scene| {
        let mut agent = scene.open();
        let port = port();
        let mut refused = 0;
        for after in 0..MOST {
            plan(after, Fault::Refused(Errno::EIO), None);
            let outcome = agent.attach(port.clone());
            let struck = failpoints::recall();
            match &outcome {
                Ok(()) => assert!(scene.is_moved(), "{after}: {}", scene.state()),
                Err(error) => assert!(scene.is_home(), "{after}, {error}: {}", scene.state()),
            }
            refused += u32::from(outcome.is_err());
            scene.assert_reachable(&format!("refused after {after}"));
            if outcome.is_ok() {
                agent.detach(&key(), None);
                assert!(scene.is_home(), "{after}, and back: {}", scene.state());
            }
            if !struck {
                assert!(outcome.is_ok() && refused > 20, "{after} {refused}");
                return;
            }
        }
        panic!("a move has more than {MOST} calls");
    });
}

#[test]
fn a_way_back_of_which_any_call_is_refused_is_gone_on_with_a_second_later() {
    within(|scene| {
        let mut agent = scene.open();
        let port = port();
        for after in 0..MOST {
            agent.attach(port.clone()).unwrap();
            plan(after, Fault::Refused(Errno::EIO), None);
            agent.detach(&key(), None);
            let struck = failpoints::recall();
            scene.assert_reachable(&format!("on the way back refused after {after}"));
            agent.tick();
            assert!(scene.is_home(), "{after}: {}", scene.state());
            let Reply::Status(status) = agent.answer(Request::Status) else { panic!("no status") };
            assert!(status.healthy && status.relocations.is_empty(), "{after}: {status:?}");
            if !struck {
                return;
            }
        }
        panic!("a way back has more than {MOST} calls");
    });
}

#[test]
fn whenever_an_agent_dies_over_a_move_the_node_is_reached_and_the_next_agent_finishes_it_or_takes_it_back() {
    within(|scene| {
        let (mut finished, mut taken_back) = (0, 0);
        for after in 0..MOST {
            let mut agent = scene.open();
            let port = port();
            plan(after, Fault::Death, Some(Failpoint::Netlink));
            let outcome = agent.attach(port);
            drop(agent);
            let died = failpoints::recall();
            scene.assert_reachable(&format!("dead after {after}"));
            // The plugin takes the link away when its ADD has failed; it may be killed, too.
            if after % 2 == 1 && outcome.is_err() {
                run("ip", &["link", "delete", "veth0"]).unwrap();
            }
            let mut agent = scene.open();
            agent.tick();
            if attached(&mut agent) {
                assert!(scene.is_moved(), "{after}: {}", scene.state());
                finished += 1;
                agent.detach(&key(), None);
            } else {
                taken_back += 1;
            }
            assert!(scene.is_home(), "{after}: {}", scene.state());
            scene.assert_reachable(&format!("after {after}, at home"));
            if !died {
                assert!(finished > 5 && taken_back > 5, "{finished} {taken_back}");
                return;
            }
        }
        panic!("a move has more than {MOST} calls");
    });
}

#[test]
fn whenever_an_agent_dies_on_the_way_back_the_node_is_reached_and_the_next_agent_brings_it_home() {
    within(|scene| {
        for after in 0..MOST {
            let mut agent = scene.open();
            agent.attach(port()).unwrap();
            assert!(scene.is_moved(), "{}", scene.state());
            plan(after, Fault::Death, Some(Failpoint::Netlink));
            agent.detach(&key(), None);
            drop(agent);
            let died = failpoints::recall();
            scene.assert_reachable(&format!("dead on the way back after {after}"));
            // With the container's link gone nobody names the uplink; else the attachment is still written down, and it is moved again.
            let goes = after % 2 == 0;
            if goes {
                run("ip", &["link", "delete", "veth0"]).unwrap();
            }
            let mut agent = scene.open();
            if attached(&mut agent) {
                assert!(!goes && scene.is_moved(), "{after}: {}", scene.state());
                agent.detach(&key(), None);
            }
            assert!(scene.is_home(), "{after}: {}", scene.state());
            if !died {
                return;
            }
        }
        panic!("a way back has more than {MOST} calls");
    });
}
