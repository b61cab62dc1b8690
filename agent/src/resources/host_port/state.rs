//! What the agent remembers of host ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use shunt_agent_api::{ProgramMode, ProgramReport};
use shunt_netlink::link::Link;

use super::reconnected::Reconnector;
use crate::datapath::attach::cgroup::SocketProgram;
use crate::datapath::attach::hook::Hook;

/// The node's addresses and the hooks of NAT ingress.
#[derive(Debug, Default)]
pub(crate) struct NatIngress {
    /// The node's addresses, each with its interfaces.
    pub(super) addresses: BTreeMap<IpAddr, BTreeSet<u32>>,
    /// Whether addresses have changed since what depends on them was looked at.
    pub(super) readdressed: bool,
    /// The addresses and prefixes that do not fit into the map.
    pub(super) beyond: BTreeSet<IpNet>,
    /// The prefixes that are the node's by route.
    pub(super) local_routes: BTreeSet<IpNet>,
    /// The interfaces without an address by which packets may come; none where they have to be read.
    pub(super) ways_in: Option<BTreeMap<u32, Link>>,
    /// The attached programs by ifindex.
    pub(crate) hooks: BTreeMap<u32, Hook>,
    /// Those that could not be attached, by ifindex.
    pub(super) missing: BTreeMap<u32, Hook>,
}

impl NatIngress {
    /// Whether an interface has an IPv4 address of its own.
    pub(crate) fn has_v4_address(&self, ifindex: u32) -> bool {
        let addresses = self.addresses.iter();
        addresses.filter(|(ip, _)| ip.is_ipv4()).any(|(_, holders)| holders.contains(&ifindex))
    }
}

/// State of the programs on sockets.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    /// The cgroup that was configured.
    pub(super) wanted: Option<PathBuf>,
    pub(super) state: State,
    /// Who connects sockets anew that the programs led elsewhere.
    pub(super) reconnector: Reconnector,
}

#[derive(Debug, Default)]
pub(super) enum State {
    /// Unknown: an earlier agent may have attached programs.
    #[default]
    Unknown,
    /// No program is attached.
    Detached,
    /// All programs are attached to this cgroup.
    Attached { cgroup: PathBuf, programs: Vec<(SocketProgram, u32)> },
    /// Attaching failed; it is tried again.
    Failed,
}

impl Sockets {
    pub(crate) fn new(wanted: Option<PathBuf>) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// The attached ones.
    pub(crate) fn reports(&self) -> Vec<ProgramReport> {
        let State::Attached { cgroup, programs } = &self.state else { return Vec::new() };
        let report = |(program, id): &(SocketProgram, u32)| ProgramReport {
            name: program.name().to_owned(),
            ifname: cgroup.display().to_string(),
            mode: ProgramMode::Cgroup,
            id: *id,
        };
        programs.iter().map(report).collect()
    }
}
