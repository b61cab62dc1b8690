//! A client outside, a port of the node, a container behind it: connections a second with few mappings on the node and
//! with many, beside the reference `portmap`; and what another mapping costs.

use anyhow::Result;
use shunt_lab::{Binaries, Container, Interrupt, Lab};

use crate::add_del::milliseconds;
use crate::comparison::{Better, Comparison, Row};
use crate::contestant::Contestant;
use crate::paths::{self, Plan};
use crate::published::{Maker, Published};
use crate::rounds::Rounds;
use crate::screen::Screen;
use crate::workload::Workload;

/// How a node with so many mappings is made.
type Prepare = fn(&Lab, Maker, u16) -> Result<Published>;

/// Measures connections from outside, with so many `mappings` on the nodes, and ADD of one more.
pub(crate) fn compare(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    mappings: &[u16],
    plan: Plan,
) -> Result<[Comparison; 2]> {
    let mut sides = sides(screen, interrupt, lab, mappings, Published::prepare)?;
    // A host without any translation: the least that a connection from outside can cost.
    sides.push(Published::prepare(lab, Maker::Nobody, 0)?);
    let adds = adds(screen, interrupt, lab, &sides, plan)?;
    Ok([connections(screen, interrupt, sides, plan)?, adds])
}

/// Ways from outside to a host port, with so many `mappings` on the nodes, which have an operator's rules.
pub(crate) fn ruled(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    mappings: &[u16],
) -> Result<Vec<Contestant>> {
    let sides = sides(screen, interrupt, lab, mappings, Published::ruled)?;
    Ok(sides.into_iter().map(Contestant::published).collect())
}

/// Connections to a host port of each build, by turns.
pub(crate) fn of_builds(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    builds: &[Binaries],
    plan: Plan,
) -> Result<Comparison> {
    let side = |(place, build)| Published::of_build(lab, &format!("build-{place}"), build, 1);
    let sides = builds.iter().enumerate().map(side).collect::<Result<Vec<_>>>()?;
    connections(screen, interrupt, sides, plan)
}

/// The reference's nodes and ours, each with so many mappings.
fn sides(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    mappings: &[u16],
    prepare: Prepare,
) -> Result<Vec<Published>> {
    let mut sides = vec![];
    for maker in [Maker::Reference, Maker::Shunt] {
        for count in mappings {
            interrupt.check()?;
            screen.progress(0.0, &format!("{}: {count} host ports", maker.title()), None);
            sides.push(prepare(lab, maker, *count)?);
        }
    }
    Ok(sides)
}

fn connections(
    screen: &mut Screen,
    interrupt: &Interrupt,
    sides: Vec<Published>,
    plan: Plan,
) -> Result<Comparison> {
    let contestants: Vec<Contestant> = sides.into_iter().map(Contestant::published).collect();
    let contestants: Vec<&Contestant> = contestants.iter().collect();
    let compared = paths::compare(screen, interrupt, Workload::Crr, &contestants, plan)?;
    let (name, title) = ("host-port".to_owned(), "Connections from outside to a host port".to_owned());
    Ok(Comparison { name, title, ..compared })
}

fn adds(
    screen: &mut Screen,
    interrupt: &Interrupt,
    lab: &Lab,
    sides: &[Published],
    plan: Plan,
) -> Result<Comparison> {
    let sides: Vec<&Published> = sides.iter().filter(|side| side.maps()).collect();
    let guests = sides
        .iter()
        .map(|side| Container::create(lab, &format!("{}-guest", side.name())))
        .collect::<Result<Vec<_>>>()?;
    let mut rows: Vec<Row> = sides.iter().map(|side| Row::new(side.name(), &side.title())).collect();
    let title = "CNI ADD with one more host port";
    let rounds = Rounds { title, count: plan.rounds, warm_up: 1, contestants: sides.len() };
    rounds.run(screen, interrupt, |turn| {
        let (side, guest) = (sides[turn.contestant], &guests[turn.contestant]);
        let took = side.one_more(guest)?;
        if turn.counts {
            rows[turn.contestant].figures.push(milliseconds(took));
        }
        Ok(())
    })?;
    Ok(Comparison {
        name: "host-port-add".to_owned(),
        title: title.to_owned(),
        unit: "ms".to_owned(),
        better: Better::Less,
        setting: "exec to exit, whole chain".to_owned(),
        rows,
    }
    .judged())
}
