//! Differences between the desired and the actual state of an attachment or a bridge.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use ipnet::IpNet;

use shunt_netlink::bridge::PortFlags;

use super::difference::Difference;
use super::lease::Amiss;
use crate::datapath::attach::hook::Hook;

/// One thing that is missing or altered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The link, with this name, is gone.
    Link(String),
    /// The host end is not a port of its bridge.
    Master {
        /// The host end.
        host: String,
        /// The bridge.
        bridge: String,
    },
    /// The bridge port has other flags.
    Flags {
        /// The host end.
        host: String,
        /// The bridge.
        bridge: String,
        /// The required flags, and those that others have added.
        expected: PortFlags,
        /// The port's flags.
        found: PortFlags,
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
    /// The table of nf_tables is missing or altered.
    Rules,
    /// A limit, in these words.
    Limit(String),
    /// Something of an uplink's queue, in these words.
    Queue(String),
    /// A map or a program is pinned no more.
    Pin(PathBuf),
    /// The bridge with this name was deleted under a container.
    Bridge(String),
    /// Programs on sockets were detached.
    Sockets,
    /// A lease of the container's.
    Lease(Amiss),
    /// The attachment has no valid state file.
    StateFile,
}

impl Finding {
    /// An entry that was looked up and is not what it should be.
    pub(crate) fn entry<T>(map: &'static str, of: impl fmt::Display, found: Option<&T>) -> Self {
        Self::Entry { map, of: of.to_string(), altered: found.is_some() }
    }

    /// The entries of a map that are not those that are wanted; `named` names one by its key.
    pub(crate) fn entries<K: Ord + Copy, V: PartialEq + Copy, N: fmt::Display>(
        map: &'static str,
        known: &BTreeMap<K, V>,
        wanted: &BTreeMap<K, V>,
        named: impl Fn(&K) -> N,
    ) -> Vec<Self> {
        let Difference { written, erased } = Difference::between(known, wanted);
        let differ = written.into_iter().map(|(key, _)| key).chain(erased);
        differ.map(|key| Self::entry(map, named(&key), known.get(&key))).collect()
    }
}

/// The names of the flags that are set.
fn names(flags: PortFlags) -> String {
    let PortFlags { hairpin, isolated, locked, aside } = flags;
    let all = [
        (hairpin, "hairpin"),
        (isolated, "isolated"),
        (locked, "locked"),
        (aside, "without learning and flooding"),
    ];
    let set: Vec<_> = all.into_iter().filter_map(|(is_set, name)| is_set.then_some(name)).collect();
    if set.is_empty() { "none".to_owned() } else { set.join(", ") }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(name) => write!(f, "the link {name} is gone"),
            Self::Master { host, bridge } => write!(f, "{host} is not a port of {bridge}"),
            Self::Flags { host, bridge, expected, found } => {
                let (expected, found) = (names(*expected), names(*found));
                write!(
                    f,
                    "bridge port flags of {host} on {bridge} differ: expected {expected}, found {found}"
                )
            }
            Self::Station { host, bridge } => {
                write!(f, "{bridge} has no static FDB entry for the container on {host}")
            }
            Self::Address { bridge, address } => write!(f, "{bridge} has lost its address {address}"),
            Self::Mac(name) => write!(f, "{name} has another MAC address"),
            Self::Relocation { uplink, bridge } => {
                write!(f, "addresses or routes of {uplink} are not on {bridge} yet")
            }
            Self::Entry { map, of, altered } => {
                let state = if *altered { "altered" } else { "missing" };
                write!(f, "the entry of {of} in {map} is {state}")
            }
            Self::Program(hook) => {
                write!(f, "the program {} is not attached to {}", hook.program.name(), hook.ifname)
            }
            Self::Driver(name) => write!(f, "the driver of {name} does not run its program"),
            Self::Bridge(name) => write!(f, "its bridge {name} was deleted"),
            Self::Sockets => f.write_str("programs were detached from the cgroup"),
            Self::Lease(amiss) => amiss.fmt(f),
            Self::Rules => f.write_str("the table `inet shunt` is missing or altered"),
            Self::Limit(how) | Self::Queue(how) => f.write_str(how),
            Self::Pin(path) => write!(f, "the pin {} is gone", path.display()),
            Self::StateFile => f.write_str("its state file is missing or altered"),
        }
    }
}
