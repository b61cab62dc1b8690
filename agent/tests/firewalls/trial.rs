//! One rule set on both sides, and the vector of flows through it: opened, carried on until it is fast, after each change, and closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use shunt_lab::patience;

use crate::flows::{Flow, PORTS, Phase, Sent, THREE, vector};
use crate::queue::{Reader, Verdict};
use crate::sides::{FORGET, Round, Side, Twins};

/// Until nothing is fast by an earlier asking.
const LEASE_OVER: Duration = Duration::from_millis(350);

/// Until the agent has looked at rules, at connection tracking, and at who keeps flows with the kernel.
const LOOKED: Duration = Duration::from_millis(1300);

/// Between packets of one flow that nobody waits for.
const PAUSE: Duration = Duration::from_millis(1);

/// How often a conversation is carried on for its flows to become fast.
const ATTEMPTS: usize = 20;

/// The client's ports of the first trial.
const FIRST_PORT: u16 = 10_000;

/// A rule set, and what becomes of it while flows last.
#[derive(Clone, Copy)]
pub(crate) struct RuleSet {
    pub(crate) name: &'static str,
    /// A shell's script for the node.
    pub(crate) rules: &'static str,
    /// The same, each while flows last.
    pub(crate) changes: &'static [&'static str],
    pub(crate) speed: Speed,
    /// Who reads the queue 7.
    pub(crate) reader: Option<Verdict>,
    /// Runs again and again all the while.
    pub(crate) meanwhile: Option<&'static str>,
}

/// What of the flows' data takes the fast path once it is let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    /// Most of it.
    Fast,
    /// Rules judge each packet: nothing of it.
    Kept,
    /// What cannot be said beforehand.
    Any,
}

impl RuleSet {
    pub(crate) const fn fast(
        name: &'static str,
        rules: &'static str,
        changes: &'static [&'static str],
    ) -> Self {
        Self { name, rules, changes, speed: Speed::Fast, reader: None, meanwhile: None }
    }

    pub(crate) const fn kept(
        name: &'static str,
        rules: &'static str,
        changes: &'static [&'static str],
    ) -> Self {
        Self { speed: Speed::Kept, ..Self::fast(name, rules, changes) }
    }

    pub(crate) const fn any(
        name: &'static str,
        rules: &'static str,
        changes: &'static [&'static str],
    ) -> Self {
        Self { speed: Speed::Any, ..Self::fast(name, rules, changes) }
    }

    /// Whether the agent hears of all that it does: not of settings, nor that connections are forgotten.
    pub(crate) fn is_heard_of(&self) -> bool {
        !self.rules.contains("/proc/sys") && !self.rules.contains("legacy")
    }

    /// Whether it leaves nothing that later rules meet: entries of a zone clash with those of none.
    pub(crate) fn leaves_nothing(&self) -> bool {
        !self.rules.contains("zone set")
    }

    /// How fast it is with leases that are shorter than a phase may take.
    pub(crate) fn speed_of_each(&self) -> Speed {
        if self.speed == Speed::Fast { Speed::Any } else { self.speed }
    }

    pub(crate) const fn read_by(self, verdict: Verdict) -> Self {
        Self { reader: Some(verdict), ..self }
    }

    pub(crate) const fn meanwhile(self, script: &'static str) -> Self {
        Self { meanwhile: Some(script), ..self }
    }
}

/// What every script may call: both families of iptables by `$IPT`, one transaction of nf_tables, and the removal of all rules.
pub(crate) const PRELUDE: &str = "
both() { iptables-$IPT -w \"$@\"; ip6tables-$IPT -w \"$@\"; }
clear() {
    nft flush ruleset
    for it in iptables ip6tables; do
        # To ask for a table of legacy iptables makes it, and what uses `raw` may have packets not tracked. In `nat` are the reference's
        # host ports.
        for table in $(grep -vx nat /proc/net/${it%tables}_tables_names); do
            $it-legacy -w -t $table -F; $it-legacy -w -t $table -X
            [ $table != filter ] || for chain in INPUT FORWARD OUTPUT; do $it-legacy -w -P $chain ACCEPT; done
        done
    done
    for it in bridge/bridge-nf-call-iptables=1 bridge/bridge-nf-call-ip6tables=1 netfilter/nf_conntrack_tcp_be_liberal=0 \\
        netfilter/nf_conntrack_tcp_loose=1 netfilter/nf_conntrack_udp_timeout=30 netfilter/nf_conntrack_udp_timeout_stream=120
    do echo ${it#*=} >/proc/sys/net/${it%=*}; done
}
";

/// Trials on one pair of nodes, one after the other.
pub(crate) struct Trials {
    twins: Twins,
    next_port: u16,
    found: Vec<String>,
}

impl Trials {
    pub(crate) fn start(file: &str) -> Self {
        Self { twins: Twins::start(file), next_port: FIRST_PORT, found: Vec::new() }
    }

    /// Tries each of them, and tells what differs.
    pub(crate) fn all(mut self, sets: &[RuleSet]) -> Vec<String> {
        for set in sets {
            let before = self.found.len();
            let begun = std::time::Instant::now();
            self.one(set);
            println!("{}: {} differences, {:?}", set.name, self.found.len() - before, begun.elapsed());
        }
        self.found
    }

    fn one(&mut self, set: &RuleSet) {
        self.run("clear");
        self.run(FORGET);
        self.twins.both().iter().for_each(|side| side.close_sockets());
        self.run(set.rules);
        let readers = set
            .reader
            .map(|verdict| self.twins.both().map(|side| Reader::start(side.node.namespace(), verdict)));
        sleep(patience(LOOKED));
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (twins, has_ended) = (&self.twins, &has_ended);
            if let Some(script) = set.meanwhile {
                for side in twins.both() {
                    scope.spawn(move || {
                        while !has_ended.load(Ordering::Relaxed) {
                            side.run(&script_of(side, script));
                            sleep(Duration::from_millis(2));
                        }
                    });
                }
            }
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut trial =
                    Trial { twins, set, found: Vec::new(), next_port: self.next_port, refused: 0 };
                trial.run();
                println!("{}: {} packets refused before changes", set.name, trial.refused);
                (trial.found, trial.next_port)
            }));
            has_ended.store(true, Ordering::Relaxed);
            let (found, next_port) = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.found.extend(found);
            self.next_port = next_port;
        });
        drop(readers);
        self.run("clear");
    }

    fn run(&self, script: &str) {
        self.twins.both().iter().for_each(|side| side.run(&script_of(side, script)));
    }
}

/// The script with addresses and names of interfaces: `@one4`, `@one6`, `@one`.
fn script_of(side: &Side, script: &str) -> String {
    let addresses = side.addresses();
    let mut script = format!("{PRELUDE}{script}");
    for (at, name) in ["one", "two", "three"].into_iter().enumerate() {
        let [v4, v6] = addresses[at].map(|it| it.to_string());
        for (word, value) in [("4", v4), ("6", v6), ("", side.host_end(at))] {
            script = script.replace(&format!("@{name}{word}"), &value);
        }
    }
    script
}

/// One rule set's way through the phases.
struct Trial<'a> {
    twins: &'a Twins,
    set: &'a RuleSet,
    found: Vec<String>,
    next_port: u16,
    /// Packets of established flows that did not come out of the reference, of one round.
    refused: u64,
}

impl Trial<'_> {
    fn run(&mut self) {
        let mut flows = self.open("opened");
        self.phase("carried on", &mut flows, Phase::On(4), Self::burst);
        self.carry_on_until_fast(&mut flows);
        self.vary(&mut flows, "varied");
        for (at, change) in self.set.changes.iter().enumerate() {
            let all = self.twins.both();
            all.iter().for_each(|side| side.run(&script_of(side, change)));
            sleep(patience(if self.set.speed == Speed::Fast { LEASE_OVER } else { LOOKED }));
            self.phase(&format!("after change {at}"), &mut flows, Phase::On(3), Self::in_step);
            self.vary(&mut flows, &format!("varied after change {at}"));
            self.open(&format!("opened after change {at}"));
        }
        self.phase("closed", &mut flows, Phase::End, Self::in_step);
    }

    /// New flows, and their first packets.
    fn open(&mut self, when: &str) -> Vec<Flow> {
        let mut flows = vector(&self.twins.ours.addresses(), self.next_port);
        self.next_port += PORTS;
        self.phase(when, &mut flows, Phase::First, Self::in_step);
        flows
    }

    fn phase(
        &mut self,
        when: &str,
        flows: &mut [Flow],
        phase: Phase,
        how: fn(&Self, Vec<Vec<Sent>>, &mut Round),
    ) -> Round {
        let mut round = Round::default();
        how(self, flows.iter_mut().map(|flow| flow.phase(phase)).collect(), &mut round);
        self.judge(when, &round);
        round
    }

    fn judge(&mut self, when: &str, round: &Round) {
        let differences = round.differences();
        self.found.extend(differences.iter().map(|it| format!("{}, {when}: {it}", self.set.name)));
    }

    /// Each flow's next packet once the packets before it have come out.
    fn in_step(&self, scripts: Vec<Vec<Sent>>, round: &mut Round) {
        for step in steps(scripts) {
            self.twins.send(&step, round);
            self.twins.settle(round, self.silence());
        }
    }

    /// Each flow's next packet without waiting for those before.
    fn burst(&self, scripts: Vec<Vec<Sent>>, round: &mut Round) {
        for step in steps(scripts) {
            self.twins.send(&step, round);
            sleep(PAUSE);
        }
        self.twins.settle(round, self.silence());
    }

    /// A reader of a queue takes a while.
    fn silence(&self) -> Duration {
        Duration::from_millis(if self.set.reader.is_some() { 40 } else { 0 })
    }

    fn carry_on_until_fast(&mut self, flows: &mut [Flow]) {
        let mut seen = Vec::new();
        for _ in 0..ATTEMPTS {
            let before = self.twins.ours.fast();
            let round = self.phase("carried on", flows, Phase::On(4), Self::burst);
            let (fast, [data, refused]) = (self.twins.ours.fast() - before, round.data());
            self.refused = refused;
            seen.push((fast, data));
            let as_expected = match self.set.speed {
                Speed::Fast => 2 * fast > data,
                Speed::Kept => fast == 0,
                Speed::Any => true,
            };
            if as_expected {
                return;
            }
        }
        self.found.push(format!("{}: not {:?}, but {seen:?}", self.set.name, self.set.speed));
    }

    /// Packets of flows that are let through, which differ from the others of their flow: by who sends them, or by their headers and frames.
    fn vary(&mut self, flows: &mut [Flow], when: &str) {
        let mut round = Round::default();
        for flow in flows {
            let packets = [flow.forged(THREE), flow.odd()].concat();
            self.twins.send(&packets, &mut round);
        }
        self.twins.settle(&mut round, self.silence());
        self.judge(when, &round);
    }
}

/// The first packets of all, the second ones, and so on.
fn steps(scripts: Vec<Vec<Sent>>) -> Vec<Vec<Sent>> {
    let length = scripts.iter().map(Vec::len).max().unwrap_or_default();
    (0..length).map(|at| scripts.iter().filter_map(|script| script.get(at).cloned()).collect()).collect()
}
