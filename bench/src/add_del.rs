//! What an ADD and a DEL cost, exec included: our plugin with the IPAM in it against the reference `bridge` and
//! `host-local`.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use shunt_lab::{Binaries, Container, Interrupt, Lab, Network, Node, Sandbox};

use crate::comparison::{Better, Comparison, Row};
use crate::rounds::Rounds;
use crate::screen::Screen;

/// How long what the last one left behind takes the kernel; the rules and queues of a whole chain take it longer.
const SETTLED: Duration = Duration::from_millis(50);
const CHAIN_SETTLED: Duration = Duration::from_millis(500);

/// The host ports of the container that stays, and of the one that comes and goes.
const HOST_PORTS: [u16; 2] = [8080, 8081];

/// Limits each way, in bits a second.
const RATE: u64 = 100_000_000;

/// What the networks are told besides their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setup {
    /// Nothing: interfaces and addresses, as little as there can be.
    Plain,
    /// `ipMasq`, as in the configurations that podman and containerd come with.
    Masquerade,
    /// A limit each way, and nothing else.
    Limited,
    /// All that the reference has plugins for: `ipMasq`, a host port, and a limit each way.
    Chain,
}

impl Setup {
    fn suffix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Masquerade => "-masquerade",
            Self::Limited => "-limited",
            Self::Chain => "-chain",
        }
    }

    /// The reference plugins that take part.
    fn reference(self) -> &'static str {
        match self {
            Self::Plain | Self::Masquerade => "bridge + host-local",
            Self::Limited => "bridge + host-local + bandwidth",
            Self::Chain => "bridge + host-local + portmap + bandwidth",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Masquerade => " with ipMasq",
            Self::Limited => " with limits",
            Self::Chain => " with ipMasq, a host port and limits",
        }
    }

    /// The network as a runtime asks for it, which wants this host port where it wants any.
    fn dress(self, maker: Maker, network: Network, host_port: u16) -> Network {
        let network = match self {
            Self::Plain | Self::Limited => network,
            Self::Masquerade | Self::Chain => network.with("ipMasq", json!(true)),
        };
        let mappings = json!([{ "hostPort": host_port, "containerPort": 80, "protocol": "tcp" }]);
        let limits = json!({
            "ingressRate": RATE, "ingressBurst": RATE / 100, "egressRate": RATE, "egressBurst": RATE / 100,
        });
        let bandwidth = json!({ "type": "bandwidth", "runtimeConfig": { "bandwidth": limits } });
        match (self, maker) {
            (Self::Plain | Self::Masquerade, _) => network,
            (Self::Limited, Maker::Shunt) => network.with("runtimeConfig", json!({ "bandwidth": limits })),
            (Self::Limited, Maker::Reference) => network.then(bandwidth),
            (Self::Chain, Maker::Shunt) => {
                network.with("runtimeConfig", json!({ "portMappings": mappings, "bandwidth": limits }))
            }
            (Self::Chain, Maker::Reference) => network
                .then(
                    json!({ "type": "portmap", "snat": true, "runtimeConfig": { "portMappings": mappings } }),
                )
                .then(bandwidth),
        }
    }
}

/// Whose plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Reference,
    Shunt,
}

/// Adds and deletes one container on each side, round by round, after one that does not count: ADD, and DEL. Another
/// container stays on each bridge, so that neither side makes bridges; and the one that comes and goes keeps its namespace,
/// because the kernel takes a namespace apart in the background, in the way of whoever has the next turn.
pub(crate) fn compare(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    setup: Setup,
    rounds: usize,
) -> Result<[Comparison; 2]> {
    let name = |side: &str| format!("adds-{side}{}", setup.suffix());
    let theirs = Side::prepare(lab, Node::bare(lab, &name("reference"))?, setup, Maker::Reference)?;
    let ours = Side::prepare(lab, Node::start(lab, &name("shunt"))?, setup, Maker::Shunt)?;
    let rows = [Row::new("reference", setup.reference()), Row::new("shunt", "shunt")];
    interleave(screen, interrupt, [theirs, ours], rows, setup, rounds)
}

/// The same, of our plugin without limits and with them.
pub(crate) fn compare_limits(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    rounds: usize,
) -> Result<[Comparison; 2]> {
    let side = |name: &str, setup: Setup| Side::prepare(lab, Node::start(lab, name)?, setup, Maker::Shunt);
    let sides = [side("adds-unlimited", Setup::Plain)?, side("adds-limited", Setup::Limited)?];
    let rows = [Row::new("unlimited", "without limits"), Row::new("limited", "with a limit each way")];
    interleave(screen, interrupt, sides, rows, Setup::Limited, rounds)
}

fn interleave(
    screen: &mut Screen,
    interrupt: &Interrupt,
    sides: [Side; 2],
    rows: [Row; 2],
    setup: Setup,
    rounds: usize,
) -> Result<[Comparison; 2]> {
    let (mut adds, mut dels) = (rows.to_vec(), rows.to_vec());
    for (side, taken) in take_turns(screen, interrupt, &sides, rounds)?.into_iter().enumerate() {
        adds[side].figures = taken.adds;
        dels[side].figures = taken.dels;
    }
    Ok(compared(setup, "exec to exit", [adds, dels]))
}

/// What ADDs and DELs took, in milliseconds, as a person reads it.
pub(crate) fn compared(setup: Setup, setting: &str, [adds, dels]: [Vec<Row>; 2]) -> [Comparison; 2] {
    let comparison = |(verb, rows): (&str, _)| Comparison {
        name: format!("{}{}", verb.to_lowercase(), setup.suffix()),
        title: format!("CNI {verb}{}", setup.title()),
        unit: "ms".to_owned(),
        better: Better::Less,
        setting: setting.to_owned(),
        rows,
    };
    [("ADD", adds), ("DEL", dels)].map(|verb| comparison(verb).judged())
}

/// What one side's ADDs and DELs took, in milliseconds, one of each a round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken {
    pub(crate) adds: Vec<f64>,
    pub(crate) dels: Vec<f64>,
}

/// Lets each side add its container and delete it, round by round, after one round that does not count.
pub(crate) fn take_turns(
    screen: &mut Screen,
    interrupt: &Interrupt,
    sides: &[Side],
    rounds: usize,
) -> Result<Vec<Taken>> {
    let mut taken = vec![Taken::default(); sides.len()];
    let rounds = Rounds { title: "ADD and DEL", count: rounds, warm_up: 1, contestants: sides.len() };
    rounds.run(screen, interrupt, |turn| {
        let (add, del) = sides[turn.contestant].once()?;
        if turn.counts {
            taken[turn.contestant].adds.push(milliseconds(add));
            taken[turn.contestant].dels.push(milliseconds(del));
        }
        Ok(())
    })?;
    Ok(taken)
}

/// A node with a container that stays, and one that comes and goes.
pub(crate) struct Side {
    network: Network,
    container: Container,
    settled: Duration,
    _resident: Sandbox,
    node: Node,
}

impl Side {
    fn prepare(lab: &Lab, node: Node, setup: Setup, maker: Maker) -> Result<Self> {
        let bare = match maker {
            Maker::Reference => node.reference_network("adds", "cni0", &["10.78.0.0/16"]),
            Maker::Shunt => node.network("adds", "cni0", &["10.78.0.0/16"]),
        };
        let theirs = setup.dress(maker, bare.clone(), HOST_PORTS[0]);
        let network = setup.dress(maker, bare, HOST_PORTS[1]);
        let resident = Sandbox::start(lab, &node, &theirs, &format!("{}-resident", node.name()))?;
        let container = Container::create(lab, &format!("{}-guest", node.name()))?;
        let settled = if setup == Setup::Chain { CHAIN_SETTLED } else { SETTLED };
        Ok(Self { network, container, settled, _resident: resident, node })
    }

    /// Our plugin and agent, of this build, with nothing but interfaces and addresses.
    pub(crate) fn of_build(lab: &Lab, name: &str, binaries: &Binaries) -> Result<Self> {
        Self::prepare(lab, Node::start_of(lab, name, binaries, &[])?, Setup::Plain, Maker::Shunt)
    }

    fn once(&self) -> Result<(Duration, Duration)> {
        // A link that is gone leaves the kernel work for a while, some of it under the lock that the next ADD wants.
        std::thread::sleep(self.settled);
        let added = self.network.add(self.node.namespace(), &self.container)?;
        let deleted = self.network.del(self.node.namespace(), &self.container, &added.result)?;
        Ok((added.took, deleted))
    }
}

/// A duration as the number that is shown.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
