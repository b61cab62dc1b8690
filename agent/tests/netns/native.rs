//! Uplinks whose drivers run a program, on two wires with a network card at each end. A machine in which other kernels run has
//! them (`xtask/src/vm/machine.rs`); elsewhere there is no hardware that a test may touch.

use std::fs;

use serde_json::json;
use shunt_agent_api::ProgramMode;
use shunt_lab::cni::Refusal;
use shunt_lab::{Container, Conversation, Echo, Lab, Lacking, Namespace, Protocol, skip};
use shunt_netlink::ethtool::Ethtool;

use crate::restrictions::tap;
use crate::stage::Stage;
use crate::uplinks::{add_in, stage};
use crate::wire::{BROADCAST, Wire, frame, says, tagged};

/// Rounds of a conversation: what comes before a station is known is one in a hundred then, and less.
const ROUNDS: u32 = 200;

/// The card at the end of a wire, by the address that the machine gave it.
fn card(wire: u8, end: u8) -> Option<String> {
    let address = format!("52:54:00:77:{wire:02x}:{end:02x}");
    let mut links = fs::read_dir("/sys/class/net").unwrap().map(|link| link.unwrap());
    let is_it = |link: &fs::DirEntry| {
        fs::read_to_string(link.path().join("address")).is_ok_and(|known| known.trim() == address)
    };
    links.find(is_it).map(|link| link.file_name().into_string().unwrap())
}

/// A node with two cards, each with a wire to somebody, and a network of layer 2 on one bridge by both.
struct Wired {
    stage: Stage,
    outside: [Namespace; 2],
}

const UPLINKS: [&str; 2] = ["up0", "up1"];

impl Wired {
    fn set() -> Option<Self> {
        let cards = [0, 1].map(|wire| [0, 1].map(|end| card(wire, end)));
        let [[Some(here0), Some(there0)], [Some(here1), Some(there1)]] = cards else {
            skip(Lacking::Kernel("a network card"));
            return None;
        };
        let mut stage = Stage::empty();
        let outside = ["left", "right"].map(|name| stage.lab.namespace(name).unwrap());
        let give = |card: &str, namespace: &Namespace, name: &str| {
            shunt_lab::run("ip", &["link", "set", card, "netns", namespace.path().to_str().unwrap()])
                .unwrap();
            namespace.command("ip", &["link", "set", card, "name", name, "up"]).unwrap();
        };
        for (card, name) in [here0, here1].iter().zip(UPLINKS) {
            give(card, stage.node.namespace(), name);
        }
        for (card, namespace) in [there0, there1].iter().zip(&outside) {
            give(card, namespace, "eth0");
        }
        stage.empty = stage.node.inventory().unwrap();
        stage.network = stage.network.with("isDefaultGateway", json!(false));
        Some(Self { stage, outside })
    }

    /// A conversation between the ends of the wires, by the addresses 10.`third`.0.1 and .2 of `ifname`; how many packets came in by
    /// the uplinks meanwhile: all, and those that the programs took.
    fn talk(&self, protocol: Protocol, ifname: &str, third: u8) -> (u64, u64) {
        for (end, namespace) in (1..).zip(&self.outside) {
            let address = format!("10.{third}.0.{end}/24");
            namespace.command("ip", &["address", "replace", &address, "dev", ifname]).unwrap();
            namespace.command("ip", &["link", "set", ifname, "up"]).unwrap();
        }
        let echo = Echo::listen(&self.outside[1], [10, third, 0, 2].into(), 7000).unwrap();
        let mut talk = Conversation::open(&self.outside[0], protocol, echo.address()).unwrap();
        // By now both are known.
        talk.chat(5, 100).unwrap();
        let before = self.counted();
        talk.chat(ROUNDS, 1000).unwrap();
        let after = self.counted();
        (after.0 - before.0, after.1 - before.1)
    }

    /// Packets that came in by the uplinks, and those of them that the programs took.
    fn counted(&self) -> (u64, u64) {
        let uplinks = self.stage.node.agent().status().unwrap().bridge_uplinks;
        let fast: u64 = uplinks.iter().map(|uplink| uplink.from.fast).sum();
        let kernel: u64 = uplinks.iter().map(|uplink| uplink.from.kernel).sum();
        (fast + kernel, fast)
    }

    /// The uplinks whose drivers run the program, by the agent's word, and by the kernel's.
    fn native(&self) -> (Vec<String>, usize) {
        let programs = self.stage.node.agent().status().unwrap().programs;
        let said = programs.into_iter().filter(|program| program.mode == ProgramMode::Xdp);
        let shown = UPLINKS
            .map(|name| self.stage.node.namespace().command("ip", &["link", "show", "dev", name]).unwrap());
        let runs = shown.iter().filter(|shown| shown.contains(" xdp ") && shown.contains("prog/xdp"));
        (said.map(|program| program.ifname).collect(), runs.count())
    }
}

#[test]
fn from_wire_to_wire_the_drivers_take_everything_and_the_stack_sees_nothing_of_it() {
    let Some(mut wired) = Wired::set() else { return };
    for (id, uplink) in ["one", "two"].into_iter().zip(UPLINKS) {
        let network = wired.stage.network.clone();
        wired.stage.network = network.clone().with("uplink", json!(uplink));
        // One wire alone leads nowhere.
        assert_eq!(wired.native(), (Vec::new(), 0));
        add_in(&mut wired.stage, id, "vlan", json!(10));
        wired.stage.network = network;
    }
    assert_eq!(wired.native(), (UPLINKS.map(str::to_owned).to_vec(), 2));
    let before = UPLINKS.map(|uplink| Wire::tap(wired.stage.node.namespace(), uplink));

    for (ifname, vid, third) in [("eth0", None, 98), ("eth0.10", Some("10"), 99)] {
        if let Some(vid) = vid {
            for namespace in &wired.outside {
                let vlan = ["link", "add", "link", "eth0", "name", ifname, "type", "vlan", "id", vid];
                namespace.command("ip", &vlan).unwrap();
            }
        }
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            // What the stack has seen until now.
            let (all, fast) = wired.talk(protocol, ifname, third);
            assert!(all > u64::from(ROUNDS), "{ifname}: {all}");
            assert!(fast * 100 > all * 99, "{ifname}: {fast} of {all}");
        }
    }
    let large = |frame: &Vec<u8>| frame.len() > 900;
    for wire in &before {
        let seen = wire.until_silence();
        assert!(
            !seen.iter().any(large),
            "the stack has seen {} frames",
            seen.iter().filter(|it| large(it)).count()
        );
    }

    // A container is the stack's to reach.
    let (there, inside) = (Wire::tap(&wired.outside[0], "eth0"), tap(&wired.stage.sandboxes[0]));
    there.send(&tagged(10, frame(inside.mac(), there.mac(), "to a container")));
    inside.until(|frame| says(frame, "to a container"));
    inside.send(&frame(there.mac(), inside.mac(), "from a container"));
    there.until(|frame| says(frame, "from a container"));
    // What belongs nowhere goes no further than the driver.
    there.send(&tagged(10, tagged(20, frame(BROADCAST, there.mac(), "in two VLANs"))));
    there.send(&tagged(10, frame(BROADCAST, there.mac(), "the last")));
    let seen = before[0].until(|frame| says(frame, "the last"));
    assert!(!seen.iter().any(|frame| says(frame, "in two VLANs")));
    let drops = wired.stage.node.agent().drops().unwrap();
    assert!(drops.iter().any(|drop| drop.port == "up0" && drop.reason == "stacked_tags"), "{drops:?}");

    // It runs on without an agent, and the next one has it.
    wired.stage.node.agent_mut().kill().unwrap();
    assert_eq!(wired.talk_unwatched(), ROUNDS);
    wired.stage.node.restart_agent().unwrap();
    assert_eq!(wired.native(), (UPLINKS.map(str::to_owned).to_vec(), 2));

    for sandbox in std::mem::take(&mut wired.stage.sandboxes) {
        sandbox.delete(&wired.stage.node, &wired.stage.network).unwrap();
        assert_eq!(wired.native(), (Vec::new(), 0));
    }
}

impl Wired {
    /// The same conversation, with nobody to ask how it went.
    fn talk_unwatched(&self) -> u32 {
        let echo = Echo::listen(&self.outside[1], [10, 99, 0, 2].into(), 7001).unwrap();
        let mut talk = Conversation::open(&self.outside[0], Protocol::Tcp, echo.address()).unwrap();
        talk.chat(ROUNDS, 1000).unwrap();
        ROUNDS
    }
}

#[test]
fn a_veth_has_no_driver_to_run_a_program_and_says_so_where_it_must() {
    let (mut stage, _outside) = stage();
    stage.add("one");
    let programs = stage.node.agent().status().unwrap().programs;
    assert!(programs.iter().all(|program| program.mode != ProgramMode::Xdp), "{programs:?}");
    stage.sandboxes.remove(0).delete(&stage.node, &stage.network).unwrap();

    let file = stage.lab.root().join("agent.toml");
    fs::write(&file, "[uplinks.up0]\nxdp = 'native'\n").unwrap();
    stage.node.agent_mut().terminate().unwrap();
    stage.node.restart_agent().unwrap();
    let before = stage.node.inventory().unwrap();
    let container = Container::create(&stage.lab, "two").unwrap();
    let refused = stage.network.add(stage.node.namespace(), &container).unwrap_err();
    let refusal = refused.downcast_ref::<Refusal>().unwrap_or_else(|| panic!("{refused:#}"));
    assert_eq!(refusal.code, 104, "{refusal}");
    assert!(refusal.to_string().contains("it is a veth and no hardware"), "{refusal}");
    assert_eq!(stage.node.inventory().unwrap(), before);
}

/// A veth takes tags off as hardware does, and can be told to leave them.
#[test]
fn who_takes_tags_off_is_known_and_does_as_it_is_told() {
    let lab = Lab::new().unwrap();
    let (one, other) = (lab.namespace("one").unwrap(), lab.namespace("other").unwrap());
    one.pair("eth0", &other, "eth0").unwrap();
    let ask = || {
        let index = nix::net::if_::if_nametoindex("eth0").unwrap();
        let mut ethtool = Ethtool::open().unwrap();
        let before = ethtool.takes_tags_off(index).unwrap();
        ethtool.leave_tags(index).unwrap();
        (before, ethtool.takes_tags_off(index).unwrap())
    };
    assert_eq!(one.enter(ask).unwrap(), (true, false));
}
