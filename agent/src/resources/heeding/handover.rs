//! The kernel opens host ports no more: before the programs do, datagrams that the kernel carries are claimed, so that no program translates them otherwise.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use shunt_agent_api::PortMapping;

use super::opening::Handover;
use crate::registry::Attachment;
use crate::resources::Node;
use crate::resources::tracked::Order;

/// How long the programs wait for that.
const PATIENCE: Duration = Duration::from_secs(5);

impl Node {
    /// Those of these ports whose host ports the programs can open now: all, or none yet.
    pub(super) fn ready_to_change(&mut self, ended: Vec<Attachment>) -> Vec<Attachment> {
        let is_ready = match &self.heeding.opening.handover {
            _ if ended.is_empty() => true,
            None => !self.order_claims(&ended),
            Some(Handover::Claiming(_, since)) => since.elapsed() >= PATIENCE,
            Some(Handover::Ready) => true,
        };
        if !is_ready {
            return Vec::new();
        }
        self.heeding.opening.handover = None;
        ended
    }

    /// Has the kernel's datagrams to these containers claimed. Returns false where that cannot be.
    fn order_claims(&mut self, of: &[Attachment]) -> bool {
        let number = self.heeding.opening.next();
        let is_ordered = self.order_claim(of, number);
        if is_ordered {
            self.heeding.opening.handover = Some(Handover::Claiming(number, Instant::now()));
        }
        is_ordered
    }

    /// Claims those as well that have come while the first were.
    pub(super) fn claim_the_last(&mut self, of: &[Attachment]) {
        let number = self.heeding.opening.next();
        self.order_claim(of, number);
    }

    fn order_claim(&mut self, of: &[Attachment], number: u64) -> bool {
        let ends: HashSet<SocketAddr> = of.iter().flat_map(ends).collect();
        let pin = self.datapath.map_pin("CLAIMS");
        self.tracker.order(Order::Claim(number, ends, pin))
    }

    /// They are claimed.
    pub(super) fn hear_of_claims(&mut self, number: u64) {
        if matches!(self.heeding.opening.handover, Some(Handover::Claiming(asked, _)) if asked == number) {
            self.heeding.opening.handover = Some(Handover::Ready);
        }
    }
}

/// Where the host ports of a container lead.
fn ends(attachment: &Attachment) -> Vec<SocketAddr> {
    let mappings = attachment.port.mappings.iter();
    let of = |mapping: &PortMapping| {
        let ips = attachment.mapped_ips(mapping);
        ips.map(|ip| SocketAddr::new(ip, mapping.container_port)).collect::<Vec<_>>()
    };
    mappings.flat_map(of).collect()
}
