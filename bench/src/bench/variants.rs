//! The parts that measure paths once more, in other circumstances.

use anyhow::Result;

use super::{Bench, ROUNDS, STREAM_ROUNDS};
use crate::comparison::Comparison;
use crate::contestant::Contestant;
use crate::crowd;
use crate::host_port;
use crate::memory;
use crate::nodes::Way;
use crate::paths::{self, Plan};
use crate::results::Results;
use crate::workload::Workload;

/// Paths that are measured once more, in other circumstances.
struct Variant<'a> {
    workloads: &'a [Workload],
    rounds: usize,
    /// Behind a workload's name in `results.json`.
    name: &'a str,
    /// Behind its title.
    title: &'a str,
}

impl<'a> Variant<'a> {
    /// All that can be measured of paths.
    fn of_all(name: &'a str, title: &'a str) -> Self {
        const ALL: &[Workload] =
            &[Workload::Rr, Workload::UdpRr, Workload::Crr, Workload::Udp, Workload::Stream(1)];
        Self { workloads: ALL, rounds: ROUNDS, name, title }
    }
}

impl Bench<'_> {
    pub(super) fn crowd_paths(&mut self, results: &mut Results) -> Result<()> {
        let many = self.options.paths_among();
        memory::ensure_room_for(2 + many.2)?;
        let few = ("shunt-2", "2 attachments", 2);
        let mut nodes = Vec::new();
        for node in [few, many] {
            nodes.push(Contestant::crowded(self.screen, self.interrupt, self.lab, node)?);
        }
        self.screen.progress(0.0, "the nodes settle", Some(crowd::SETTLING));
        std::thread::sleep(crowd::SETTLING);
        let contestants = [&nodes[0], &nodes[1], &nodes[0]];
        let workloads = &[Workload::Rr, Workload::Udp];
        let variant =
            Variant { workloads, rounds: ROUNDS, name: "crowded", title: " among other attachments" };
        self.paths_of(&contestants, &variant, results)
    }

    pub(super) fn nodes(&mut self, way: Way, results: &mut Results) -> Result<()> {
        let nodes = Contestant::apart(self.lab, way)?;
        let title = format!(", {}", way.title());
        self.paths_of(&with_control(&nodes), &Variant::of_all(way.name(), &title), results)
    }

    /// Measures a variant of paths.
    fn paths_of(
        &mut self,
        contestants: &[&Contestant],
        &Variant { workloads, rounds, name, title }: &Variant<'_>,
        results: &mut Results,
    ) -> Result<()> {
        for workload in workloads {
            self.interrupt.check()?;
            let plan = Plan { rounds, bound: self.options.bound() };
            let compared = paths::compare(self.screen, self.interrupt, *workload, contestants, plan)?;
            let (name, title) = (format!("{}-{name}", compared.name), format!("{}{title}", compared.title));
            self.keep(Comparison { name, title, ..compared }, results)?;
        }
        Ok(())
    }

    pub(super) fn policed(&mut self, results: &mut Results) -> Result<()> {
        let all = [
            Contestant::bare_veth(self.lab)?,
            Contestant::shunt_policed(self.lab)?,
            Contestant::bridge_policed(self.lab)?,
        ];
        self.paths_of(
            &with_control(&all),
            &Variant::of_all("policed", ", where others have a policy"),
            results,
        )
    }

    pub(super) fn watched(&mut self, results: &mut Results) -> Result<()> {
        let all = [Contestant::shunt(self.lab)?, Contestant::shunt_watched(self.lab)?];
        self.paths_of(&with_control(&all), &Variant::of_all("watched", ", while drops are watched"), results)
    }

    pub(super) fn big_tcp(&mut self, results: &mut Results) -> Result<()> {
        let inside = vec![
            Contestant::bare_veth(self.lab)?,
            Contestant::shunt_of_large_packets(self.lab)?,
            Contestant::shunt(self.lab)?,
        ];
        let out = vec![Contestant::leaving(self.lab, "off")?, Contestant::leaving(self.lab, "auto")?];
        let workloads = &[Workload::Stream(1), Workload::Stream(8)];
        for (all, name, title) in
            [(inside, "big-tcp", ", large packets"), (out, "big-tcp-out", ", masqueraded")]
        {
            let variant = Variant { workloads, rounds: STREAM_ROUNDS, name, title };
            self.paths_of(&with_control(&all), &variant, results)?;
        }
        Ok(())
    }

    /// From outside to host ports, with few and many of them.
    pub(super) fn heeded_host_port(&mut self, results: &mut Results) -> Result<()> {
        let mappings = self.options.few_and_many_host_ports();
        let all = host_port::ruled(self.screen, self.interrupt, self.lab, mappings)?;
        self.heeded(&all, "heeded-host-port", ", host port under others' rules", results)
    }

    pub(super) fn heeded_masquerade(&mut self, results: &mut Results) -> Result<()> {
        let all = Contestant::leaving_ruled(self.lab)?;
        self.heeded(&all, "heeded-masquerade", ", masqueraded under others' rules", results)
    }

    /// Measures what the kernel opens, and how slow the slowest connections are.
    fn heeded(&mut self, all: &[Contestant], name: &str, title: &str, results: &mut Results) -> Result<()> {
        // Connections last: what they leave in the tables is in nobody's way.
        let workloads = &[Workload::Rr, Workload::Stream(1), Workload::StreamBack, Workload::Crr];
        let variant = Variant { workloads, rounds: ROUNDS, name, title };
        self.paths_of(&with_control(all), &variant, results)?;
        let of_connections = format!("{}-{name}", Workload::Crr.name());
        let connections = results.comparisons.iter().find(|comparison| comparison.name == of_connections);
        let tails = connections.and_then(Comparison::tails);
        tails.map_or(Ok(()), |tails| self.keep(tails, results))
    }
}

/// All of them, and the first one twice: the same path measured against itself is the noise of this run.
fn with_control(all: &[Contestant]) -> Vec<&Contestant> {
    all.iter().chain(all.first()).collect()
}
