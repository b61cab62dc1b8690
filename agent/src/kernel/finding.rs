//! What of an attachment or a bridge is not as it should be.

use std::fmt;
use std::path::PathBuf;

use ipnet::IpNet;

use crate::bpf::hook::Hook;

/// One thing that is missing or altered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The link, with this name, is gone.
    Link(String),
    /// The host end is not a port of its bridge.
    Master {
        /// The host end.
        host: String,
        /// The bridge.
        bridge: String,
    },
    /// The bridge was told something else of the port.
    Flags {
        /// The host end.
        host: String,
        /// The bridge.
        bridge: String,
    },
    /// The bridge does not know any more that the container is behind its port, or takes it to be elsewhere.
    Station {
        /// The host end.
        host: String,
        /// The bridge.
        bridge: String,
    },
    /// The bridge has lost an address.
    Address {
        /// The bridge.
        bridge: String,
        /// The address.
        address: IpNet,
    },
    /// A VLAN's gateway has another MAC address than its neighbours know.
    Mac(String),
    /// What an uplink carries is on its way to the bridge.
    Relocation {
        /// The uplink.
        uplink: String,
        /// The bridge.
        bridge: String,
    },
    /// A map entry.
    Entry {
        /// In which map.
        map: &'static str,
        /// Of what.
        of: String,
        /// Whether there is one, with something else in it.
        altered: bool,
    },
    /// A program is not attached.
    Program(Hook),
    /// The driver of the uplink with this name does not run its program any more.
    Driver(String),
    /// A limit, in these words.
    Limit(String),
    /// A map or a program is pinned no more.
    Pin(PathBuf),
    /// The attachment is not written down.
    StateFile,
}

impl Finding {
    /// An entry that was looked up and is not what it should be.
    pub(super) fn entry<T>(map: &'static str, of: impl fmt::Display, found: Option<&T>) -> Self {
        Self::Entry { map, of: of.to_string(), altered: found.is_some() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(name) => write!(f, "the link {name} is gone"),
            Self::Master { host, bridge } => write!(f, "{host} is not a port of {bridge}"),
            Self::Flags { host, bridge } => write!(f, "{bridge} was told something else of {host}"),
            Self::Station { host, bridge } => {
                write!(f, "{bridge} does not know any more who is behind {host}")
            }
            Self::Address { bridge, address } => write!(f, "{bridge} has lost its address {address}"),
            Self::Mac(name) => write!(f, "{name} has another MAC address"),
            Self::Relocation { uplink, bridge } => {
                write!(f, "not all that {uplink} carries is on {bridge} yet")
            }
            Self::Entry { map, of, altered } => {
                let state = if *altered { "altered" } else { "missing" };
                write!(f, "the entry of {of} in {map} is {state}")
            }
            Self::Program(hook) => {
                write!(f, "the program {} is not attached to {}", hook.program.name(), hook.ifname)
            }
            Self::Driver(name) => write!(f, "the driver of {name} does not run its program"),
            Self::Limit(how) => f.write_str(how),
            Self::Pin(path) => write!(f, "the pin {} is gone", path.display()),
            Self::StateFile => f.write_str("its state file is missing or altered"),
        }
    }
}
