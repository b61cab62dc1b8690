//! What one container may have of the tables of connections: whoever has all of it takes nothing from others.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use aya::maps::{Array, Map, MapData};
use shunt_dataplane::abi::ABI_VERSION;
use shunt_dataplane::abi::share::Share;
use shunt_lab::{Agent, Lab, Protocol};

use crate::many::{datagrams, flows};
use crate::stage::{NODE, Stage, address, mapping};

fn stage(arguments: &[&str]) -> Stage {
    let mut stage = Stage::with(Lab::with_all_programs().unwrap(), arguments);
    stage.add("one", &[mapping(8080, 7000, "tcp"), mapping(8053, 7053, "udp")]);
    stage.add("two", &[mapping(8090, 7000, "tcp")]);
    stage
}

/// Packets that were dropped for this reason.
pub(crate) fn dropped(agent: &Agent, reason: &str) -> u64 {
    let drops = agent.drops().unwrap();
    drops.iter().filter(|drop| drop.reason == reason).map(|drop| drop.packets).sum()
}

#[test]
fn a_container_with_all_the_connections_that_it_may_have_refuses_more_and_others_do_not() {
    let stage = stage(&["--max-flows", "4096", "--max-flows-per-container", "20"]);
    let _echoes = [stage.echo(0, 7000), stage.echo(1, 7000)];
    let open = |port| {
        let mut talk = stage.open(&stage.outside, Protocol::Tcp, NODE[0], port);
        talk.chat(2, 100).unwrap();
        talk
    };
    let mut talks: Vec<_> = (0..20).map(|_| open(8080)).collect();
    let once_more = || {
        let to = SocketAddr::new(address(NODE[0]), 8080);
        TcpStream::connect_timeout(&to, Duration::from_millis(700)).map(drop).map_err(|error| error.kind())
    };
    assert_eq!(stage.outside.enter(once_more).unwrap(), Err(ErrorKind::TimedOut));
    assert!(dropped(stage.node.agent(), "connection_limit") > 0, "and it is counted");
    let mut other = open(8090);
    stage.wait_until("the status says so", |agent| {
        let warnings = agent.status().unwrap().warnings;
        warnings.iter().any(|warning| warning.contains("one container may have") && warning.contains("one"))
    });
    // One that has ended makes room at once.
    drop(talks.pop());
    stage.wait_until("the connection has ended", |agent| flows(agent, "ASSURED").keys().count() <= 2 * 20);
    talks.push(open(8080));
    for talk in talks.iter_mut().chain([&mut other]) {
        talk.chat(2, 100).unwrap();
    }
}

#[test]
fn connections_that_are_opened_at_once_take_no_more_room_than_their_container_may_have() {
    let stage = stage(&["--max-flows", "4096", "--max-flows-per-container", "20"]);
    let _echo = stage.echo(0, 7053);
    // None is assured before it has lasted for two seconds, so all of them may be opened.
    let mut talks: Vec<_> =
        (0..60).map(|_| stage.open(&stage.outside, Protocol::Udp, NODE[0], 8053)).collect();
    for wait in [0, 2_200, 100] {
        std::thread::sleep(Duration::from_millis(wait));
        for talk in &mut talks {
            talk.chat(1, 100).unwrap();
        }
    }
    let assured = flows(stage.node.agent(), "ASSURED").keys().count();
    assert!((38..=42).contains(&assured), "two entries for each of 20, and not {assured}");
}

/// What a container has, by its counter slot.
fn shares(agent: &Agent) -> Array<MapData, Share> {
    let pin = agent.bpffs().join(format!("v{ABI_VERSION}/maps/SHARES"));
    Array::try_from(Map::from_map_data(MapData::from_pin(pin).unwrap()).unwrap()).unwrap()
}

#[test]
fn a_count_that_is_wrong_shuts_nobody_out_for_long() {
    let stage = stage(&["--max-flows", "4096"]);
    let _echo = stage.echo(0, 7000);
    let mut counted = shares(stage.node.agent());
    let full = |share: &Share| share.most != 0 && share.assured >= share.most.into();
    // As an agent leaves it that was killed between removing the entries and counting them off.
    for slot in 0..counted.len() {
        let share = counted.get(&slot, 0).unwrap();
        if share.most != 0 {
            counted.set(slot, Share { assured: share.most.into(), ..share }, 0).unwrap();
        }
    }
    assert_eq!((0..counted.len()).filter(|slot| full(&counted.get(slot, 0).unwrap())).count(), 2);
    stage.wait_until("the counts are corrected", |agent| {
        let counted = shares(agent);
        (0..counted.len()).all(|slot| !full(&counted.get(&slot, 0).unwrap()))
    });
    stage.open(&stage.outside, Protocol::Tcp, NODE[0], 8080).chat(2, 100).unwrap();
}

#[test]
fn a_share_is_one_of_the_maps_that_are_there() {
    let mut stage = stage(&[]);
    let most = |stage: &Stage| {
        let counted = shares(stage.node.agent());
        (0..counted.len()).map(|slot| counted.get(&slot, 0).unwrap().most).max().unwrap()
    };
    let before = most(&stage);
    assert!(before > 0);
    stage.node.agent_mut().terminate().unwrap();
    stage.node.agent_mut().also_say(&["--max-flows", "524288"]);
    stage.node.restart_agent().unwrap();
    assert_eq!(most(&stage), before, "the maps are as large as they were");
}

#[test]
fn openings_that_nobody_answers_are_bounded_by_their_rate() {
    let stage = stage(&["--max-flows", "4096"]);
    let _echoes = [stage.echo(0, 7000), stage.echo(1, 7000)];
    // Nobody listens there, and what the kernel of the container says about it is no answer.
    datagrams(&stage, "192.0.2.9", 10_000, 8_000);
    let refused = dropped(stage.node.agent(), "opening_rate");
    assert!(refused > 1_000, "{refused}");
    // Neither another container's connections nor its own are opened by datagrams.
    for port in [8090, 8080] {
        stage.open(&stage.outside, Protocol::Tcp, NODE[0], port).chat(2, 100).unwrap();
    }
    assert_eq!(dropped(stage.node.agent(), "opening_rate"), refused);
}

#[test]
fn an_agent_that_knows_no_assured_connections_finds_them_all_and_gives_them_back() {
    let mut stage = stage(&[]);
    let _echo = stage.echo(0, 7000);
    let mut talks: Vec<_> =
        NODE.into_iter().map(|node| stage.open(&stage.outside, Protocol::Tcp, node, 8080)).collect();
    talks.iter_mut().for_each(|talk| talk.chat(2, 100).unwrap());
    assert_eq!(flows(stage.node.agent(), "ASSURED").keys().count(), 4);
    // Those that were made when the connections began could be anything by now.
    let mut earlier = flows(stage.node.agent(), "FLOWS");
    for key in earlier.keys().collect::<Result<Vec<_>, _>>().unwrap() {
        earlier.remove(&key).unwrap();
    }
    stage.node.agent_mut().terminate().unwrap();
    assert_eq!(earlier.keys().count(), 4, "it leaves them for whoever comes next");
    // To an older one's programs the map is not there.
    let mut assured = flows(stage.node.agent(), "ASSURED");
    let entries: Vec<_> = assured.iter().map(Result::unwrap).collect();
    for (key, _) in &entries {
        assured.remove(key).unwrap();
    }
    talks.iter_mut().for_each(|talk| talk.chat(2, 100).unwrap());
    // What it was when it was left is older by now than what is in the other map.
    for (key, flow) in &entries {
        assured.insert(key, flow, 0).unwrap();
        let known = earlier.get(key, 0).unwrap();
        assert!(known.touched >= flow.touched);
    }
    stage.node.restart_agent().unwrap();
    let later: Vec<_> = flows(stage.node.agent(), "ASSURED").iter().map(Result::unwrap).collect();
    assert_eq!(later.len(), 4);
    for (key, flow) in &later {
        assert_eq!(
            Some(flow.packets),
            earlier.get(key, 0).ok().map(|flow| flow.packets),
            "the newer one counts"
        );
    }
    talks.iter_mut().for_each(|talk| talk.chat(2, 100).unwrap());
}
