//! What there is to measure.

use clap::ValueEnum;

use crate::workload::Workload;

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// TCP round trips, both ends on one CPU
    Rr,
    /// TCP round trips, the ends on two CPUs
    RrTwoCpus,
    /// TCP connections
    Crr,
    /// UDP packets
    Udp,
    /// One TCP stream
    #[value(name = "stream-1")]
    Stream1,
    /// Eight TCP streams
    #[value(name = "stream-8")]
    Stream8,
    /// The plugins' times, as little as there can be to do
    AddDel,
    /// The plugins' times with ipMasq, as podman and containerd are set up
    AddDelMasquerade,
    /// The plugins' times with all that they do: ipMasq, a host port, limits
    AddDelChain,
    /// What limits add to our plugin's times
    AddDelLimited,
    /// Connections from outside to host ports, and what another mapping costs
    HostPort,
    /// How limits are kept, and how long a datagram waits under one
    Limits,
    /// The plugin's times among other attachments, and the agent with all of them
    Crowd,
    /// Round trips and packets between two containers of a node with 1,000 attachments, beside one with 2
    CrowdPaths,
    /// An agent with 10,000 attachments on ten bridges: another one, its reports, its start, its memory, and doing nothing
    ManyBridges,
    /// Between pods of two nodes by routes, beside the kernel alone
    NodesRoutes,
    /// Between pods of two nodes by VXLAN, beside a plain VXLAN device
    NodesVxlan,
    /// Between two containers where bridged packets meet somebody else's policy, beside the kernel's bridge with the same
    Policed,
    /// Between two containers while `drops --watch` runs, beside the same while nobody watches
    Watched,
    /// Connections, round trips and streams to host ports under an operator's rules, beside the reference `portmap` under the same
    HeededHostPort,
    /// The same from containers to a host outside, masqueraded, beside the reference `bridge` under the same rules
    HeededMasquerade,
    /// Streams in packets of more than 64 KiB, between two containers and out of the node, beside the same in packets of 64 KiB
    BigTcp,
    /// What the verifier makes of the programs
    Programs,
}

impl Part {
    /// As it is asked for.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The load, where it is one between two containers of a node.
    pub(crate) fn workload(self) -> Option<Workload> {
        match self {
            Self::Rr => Some(Workload::Rr),
            Self::RrTwoCpus => Some(Workload::RrTwoCpus),
            Self::Crr => Some(Workload::Crr),
            Self::Udp => Some(Workload::Udp),
            Self::Stream1 => Some(Workload::Stream(1)),
            Self::Stream8 => Some(Workload::Stream(8)),
            Self::AddDel
            | Self::AddDelMasquerade
            | Self::AddDelChain
            | Self::AddDelLimited
            | Self::HostPort
            | Self::Limits
            | Self::Crowd
            | Self::CrowdPaths
            | Self::ManyBridges
            | Self::NodesRoutes
            | Self::NodesVxlan
            | Self::Policed
            | Self::Watched
            | Self::HeededHostPort
            | Self::HeededMasquerade
            | Self::BigTcp
            | Self::Programs => None,
        }
    }
}
