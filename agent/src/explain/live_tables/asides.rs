//! Look-ups with more to say than what was found: a container's share, a host port, a claim, and the node's own sockets.

use std::net::{IpAddr, SocketAddr};

use shunt_dataplane::abi::share::Share;
use shunt_dataplane::abi::translation::{Mapping, MappingKey, TupleKey};
use shunt_dataplane::abi::{KernelFlow, KernelShare};
use shunt_dataplane::tables::Claimant;
use shunt_netlink::sock_diag::listeners;

use super::super::asked::Asked;
use super::{LiveTables, tuple};

impl LiveTables<'_> {
    /// What a container has of the tables of connections.
    pub(super) fn share_of(&self, slot: u32) -> Option<Share> {
        let share = self.maps.shares.get(&slot, 0).ok()?;
        let Share { assured, most, due, .. } = share;
        let ahead = due.map(|due| due.saturating_sub(self.times.boot) / 1_000_000);
        self.note(
            Asked::Translation,
            format!(
                "SHARES[{slot}]: {assured} of {most} assured entries; openings are paid for {} ms ahead, its clients' of TCP {} ms, of \
                 datagrams {} ms, of 1000",
                ahead[0], ahead[1], ahead[2]
            ),
        );
        Some(share)
    }

    /// What a container has of the kernel's flows, or all have.
    pub(super) fn kernel_share_of(&self, slot: u32) -> Option<KernelShare> {
        let share = self.maps.kernel_shares.get(&slot, 0).ok()?;
        let KernelShare { flows, most, refused, .. } = share;
        self.note(Asked::KernelFlow, format!("KERNEL_SHARES[{slot}]: {flows} of {most}, {refused} refused"));
        Some(share)
    }

    /// When the kernel has used a tuple.
    pub(super) fn claim_of(&self, by: Claimant, key: &TupleKey) -> Option<u64> {
        let (map, claims) = match by {
            Claimant::Own => ("OWN_CLAIMS", &self.maps.own_claims),
            Claimant::Masqueraded => ("CLAIMS", &self.maps.claims),
        };
        let found = |_: &KernelFlow| "the kernel's".to_owned();
        let asked = (Asked::Translation, map);
        self.look(asked, claims, (key, tuple(key)), found).map(|flow| flow.noticed)
    }

    /// Where a host port leads.
    pub(super) fn mapping_of(&self, key: &MappingKey) -> Option<Mapping> {
        let called = format!("{}:{}/{}", IpAddr::from(key.address), key.port.number(), key.protocol);
        let found = |mapping: &Mapping| {
            format!(
                "{} or {}, port {}",
                IpAddr::from(mapping.v4),
                IpAddr::from(mapping.v6),
                mapping.port.number()
            )
        };
        self.look((Asked::Translation, "MAPPINGS"), &self.maps.mappings, (key, called), found)
    }

    /// Whether a socket of the node listens where the answer to a packet with this tuple would come.
    pub(super) fn listens(&self, tuple: &TupleKey) -> bool {
        let sockets = listeners(tuple.protocol).unwrap_or_else(|error| {
            self.failed.set(Some(error.into()));
            Vec::new()
        });
        let takes = |socket: &SocketAddr| {
            let ip = socket.ip().to_canonical();
            socket.port() == tuple.source_port.number()
                && (ip.is_unspecified() || ip == IpAddr::from(tuple.source))
        };
        sockets.iter().any(takes)
    }
}
