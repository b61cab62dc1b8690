//! Takes out every attachment, and leaves the kernel to serve what goes on.

use std::thread::sleep;
use std::time::{Duration, Instant};

use shunt_agent_api::Bandwidth;

use super::Agent;
use crate::datapath::attach::hook::{Hook, Program};
use crate::datapath::attach::tcx;
use crate::nft::{Rules, replace};
use crate::resources::Node;

/// How long the kernel may take to detach programs whose pins are gone.
const PARTING: Duration = Duration::from_secs(2);

impl Agent {
    /// Removes programs, entries, rules and what was moved. Limits stay: they are queues of the kernel's, and go with the container. Says
    /// what could not be removed. The agent is of no use afterwards, but keeps others out.
    pub fn retire(&mut self) -> Vec<String> {
        let node = &mut self.node;
        let keys: Vec<_> = node.registry.attachments().map(|known| known.port.key.clone()).collect();
        for key in keys {
            if let Some(known) = node.registry.get_mut(&key) {
                known.port.bandwidth = Bandwidth::default();
            }
            node.take_out(&key, "uninstalled");
        }
        let orphans: Vec<_> = node.orphaned().cloned().collect();
        for key in orphans {
            node.forget_orphan(&key, false);
        }
        for host in node.unattached.keys().copied().collect::<Vec<_>>() {
            node.let_go(host);
        }
        node.return_relocations();
        node.update_nat_ingress();
        let mut left: Vec<_> = node.relocation_warnings().collect();
        left.extend(replace(&Rules::default()).err().map(|error| error.to_string()));
        left.extend(node.return_packet_sizes());
        left.extend(node.datapath.remove_pins());
        left.extend(node.attached_still());
        left
    }
}

impl Node {
    /// Which programs are on a link, once the kernel has had its time.
    fn attached_still(&mut self) -> Vec<String> {
        let links = match self.kernel.links() {
            Ok(links) => links,
            Err(error) => return vec![error.to_string()],
        };
        let hooks = links
            .into_iter()
            .flat_map(|link| Program::ALL.map(|program| Hook::open(program, link.index, link.name.clone())));
        let mut there: Vec<_> = hooks.filter(tcx::is_there).collect();
        let begun = Instant::now();
        while !there.is_empty() && begun.elapsed() < PARTING {
            sleep(Duration::from_millis(5));
            there.retain(tcx::is_there);
        }
        there.iter().map(|hook| format!("the program {hook}")).collect()
    }
}
