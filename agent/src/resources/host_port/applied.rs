//! Changes host ports, and tells what they take.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use shunt_agent_api::BridgePort;
use shunt_netlink::sock_diag::listeners;

use crate::datapath::{encode, programs};
use crate::registry::Attachment;
use crate::resources::{Node, Refusal};

impl Node {
    /// Warns about listening sockets of the node that a host port shadows.
    pub(crate) fn tell_shadowed(&self, port: &BridgePort) {
        let mut listening = BTreeMap::new();
        for mapping in &port.mappings {
            let protocol = encode::protocol_number(mapping.protocol);
            // No warning if the kernel cannot list sockets.
            let all = listening.entry(protocol).or_insert_with(|| listeners(protocol).unwrap_or_default());
            let shadows = |at: &&SocketAddr| {
                let ip = at.ip().to_canonical();
                // A socket on `::` may accept IPv4, too.
                let hears = ip.is_unspecified() && (ip.is_ipv6() || mapping.is_of_family(ip));
                at.port() == mapping.host_port && (hears || mapping.is_at(ip))
            };
            if let Some(at) = all.iter().find(shadows) {
                tracing::warn!(
                    key = %port.key, %mapping, listener = %at.ip(),
                    "a socket of the node listens on this host port; its connections go to the container from now on"
                );
            }
        }
    }

    /// Replies are translated before the first request can arrive, and until after the last. Entries that are
    /// kept are never removed in between: the node would answer a packet with a reset.
    pub(crate) fn remap(&mut self, from: &Attachment, to: &Attachment) -> Result<(), Refusal> {
        self.registry.insert(to.clone());
        let (was, is) = (from.is_translated(), to.is_translated());
        if is && !was {
            self.datapath.attach(&programs::of_translation(to))?;
        }
        self.datapath.write_mapped(to)?;
        // Whom the kernel is to open, it can before the programs do not.
        self.set_rules()?;
        // Where the kernel cannot, the programs do after all.
        let known = self.registry.get(&to.port.key).cloned();
        let to = known.as_ref().unwrap_or(to);
        self.datapath.write_mappings(to)?;
        for error in self.datapath.erase_old_mappings(from, to) {
            tracing::warn!(key = %from.port.key, %error, "cannot remove a host port");
        }
        if was && !is {
            self.datapath.detach(&programs::of_translation(from))?;
        }
        self.update_nat_ingress();
        self.follow_mappings(&from.port.mappings, &to.port.mappings);
        self.forget_connections(Some(from), Some(to));
        Ok(())
    }
}
