//! What every package says of itself, and the places on a node that others ask for.

/// The packages' name.
pub const PACKAGE: &str = "shunt";

/// The file that is an operator's.
pub const CONFIGURATION: &str = "etc/shunt/agent.toml";

/// Where the plugin lies until it is put into the runtime's directory.
pub const PLUGIN: &str = "usr/libexec/shunt/shunt";

pub(super) const SUMMARY: &str = "CNI plugin and node agent that forward container traffic in eBPF";

pub(super) const DESCRIPTION: &str = "shunt replaces the reference plugins bridge, vlan, portmap and bandwidth, and the iptables rules behind them. Every \
                           network stays a bridge of the kernel's, and traffic goes on while the agent is away.";

pub(super) const LICENSE: &str = "MIT OR Apache-2.0";

pub(super) const MAINTAINER: &str = "The shunt maintainers <shunt@localhost>";
