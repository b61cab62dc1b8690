//! What others' chains do, as it was read.

use shunt_netlink::netfilter::BaseChain;

use crate::resources::external_rule::harmless::{Bridges, Harm, Kernel, Reach, harm_of};

/// Chains with what they do.
#[derive(Debug, Default)]
pub(super) struct Harms {
    /// In which generation of nf_tables.
    generation: Option<u32>,
    /// Where these were the bridges.
    bridges: Bridges,
    /// Each chain with what it does.
    pub(super) of: Vec<(BaseChain, Harm)>,
}

impl Harms {
    /// Reads these chains, unless nobody has changed any since. Whoever cannot be asked may do anything.
    pub(super) fn read(&mut self, generation: Option<u32>, chains: &[&BaseChain], bridges: &Bridges) {
        let is_known = self.of.iter().map(|(chain, _)| chain).eq(chains.iter().copied());
        if generation.is_some() && self.generation == generation && self.bridges == *bridges && is_known {
            return;
        }
        let mut kernel = Kernel::default();
        let mut harm = |chain: &BaseChain| {
            harm_of(chain, bridges, &mut kernel).unwrap_or_else(|error| {
                tracing::debug!(%error, chain.name, chain.table, "others' rules cannot be read");
                Harm::unknown()
            })
        };
        self.of = chains.iter().map(|chain| ((*chain).clone(), harm(chain))).collect();
        (self.generation, self.bridges) = (generation, bridges.clone());
    }

    /// Those that are met by packets to these. Where there are any, these may mark packets for others.
    pub(super) fn met_in(&self, reach: &Reach) -> Vec<BaseChain> {
        let are_marked = self.are_met_in(reach);
        let met =
            self.of.iter().filter(|(_, harm)| harm.is_met_in(reach) || are_marked && harm.is_for_marked());
        met.map(|(chain, _)| chain.clone()).collect()
    }

    /// The same of what the node sends or routes to these. It may have marks that were set where nobody looks: by rules that bridged packets do not meet, by
    /// sockets (`SO_MARK`).
    pub(super) fn met_from_node_in(&self, reach: &Reach) -> Vec<BaseChain> {
        let met = self.of.iter().filter(|(_, harm)| harm.is_met_in(reach) || harm.is_for_marked());
        met.map(|(chain, _)| chain.clone()).collect()
    }

    /// Whether any of them is met by packets to these.
    pub(super) fn are_met_in(&self, reach: &Reach) -> bool {
        self.of.iter().any(|(_, harm)| harm.is_met_in(reach))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::resources::external_rule::filters::chains;
    use crate::resources::external_rule::hooks::{Bypassed, Crossed, bypassed_of, met_on_bridges};

    /// Who is met by two containers' packets, and by what the node sends to them, after this command of nft, in a namespace that goes with its thread.
    fn met_after(tables: &str, is_shown: bool) -> [bool; 2] {
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
                assert!(Command::new("nft").arg(tables).status().expect("nft runs").success());
                let crossed = Crossed { shown: [is_shown; 3], ..Crossed::default() };
                let (met, _) = met_on_bridges(chains().unwrap(), &crossed);
                let mut harms = Harms::default();
                harms.read(None, &met.iter().collect::<Vec<_>>(), &Bridges::default());
                let reach = Reach::to(&["10.77.0.2", "10.77.0.3"].map(|address| address.parse().unwrap()));
                let Bypassed { bridged, .. } = bypassed_of(&harms.met_in(&reach), &crossed);
                let Bypassed { from_node, .. } = bypassed_of(&harms.met_from_node_in(&reach), &crossed);
                [!bridged.is_empty(), !from_node.is_empty()]
            });
            reader.join().unwrap()
        })
    }

    const MARKS: &str =
        "table ip m { chain pre { type filter hook prerouting priority mangle; meta mark set 7; }; }";
    const MARKED: &str =
        "table bridge fw { chain post { type filter hook postrouting priority 0; meta mark 7 drop; }; }";

    #[test]
    fn what_the_node_sends_may_have_a_mark_that_nobody_sees_being_set() {
        assert_eq!(met_after(&format!("{MARKS}\n{MARKED}"), false), [false, true]);
        assert_eq!(met_after(MARKED, false), [false, true]);
        assert_eq!(met_after(&format!("{MARKS}\n{MARKED}"), true), [true, true]);
        let at_forward = MARKED.replace("postrouting", "forward");
        assert_eq!(met_after(&at_forward, false), [false, false], "what the node sends is not forwarded");
    }

    #[test]
    fn what_the_node_sends_by_a_bridge_meets_rules_of_its_output() {
        let output =
            "table bridge fw { chain it { type filter hook output priority 0; meta l4proto sctp drop; }; }";
        assert_eq!(met_after(output, false), [false, true]);
    }

    #[test]
    fn what_engines_do_to_marked_packets_of_ip_concerns_nothing_that_the_node_sends() {
        let engine = "table ip nat { chain post { type nat hook postrouting priority 100; \
            meta mark & 0x4000 != 0x4000 return; masquerade; }; }";
        for is_shown in [false, true] {
            assert_eq!(met_after(engine, is_shown), [false, false]);
        }
    }
}
