//! Why an address could not be given, taken back or vouched for.

use std::{
    io,
    net::IpAddr,
    path::{Path, PathBuf},
};

use super::fault::Fault;

/// What went wrong in the built-in IPAM.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key of the configuration cannot be used.
    #[error("{key}: {fault}")]
    InvalidConfig {
        /// The path of the key, such as `ipam.ranges[0][1].rangeStart`.
        key: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// Neither the configuration nor the runtime gives a range.
    #[error("ipam.ranges: no address ranges, and none in runtimeConfig.ipRanges")]
    NoRanges,
    /// A second range set of a family, for a caller whose results have room for one address of each.
    #[error(
        "range set {set} ({ranges}) is a second {family} one: results before 0.3.0 have one address of each family"
    )]
    SecondOfFamily {
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// The set's place among all sets, those of the runtime first.
        set: usize,
        /// Its ranges, `start-end`, separated by commas.
        ranges: String,
    },
    /// A range set has no free address left.
    #[error("no address left in range set {set} ({ranges}): {taken} of {capacity} are in use")]
    Exhausted {
        /// The set's place among all sets, those of the runtime first.
        set: usize,
        /// Its ranges, `start-end`, separated by commas.
        ranges: String,
        /// How many addresses are in use.
        taken: u128,
        /// How many addresses containers may have.
        capacity: u128,
    },
    /// A requested address is in use.
    #[error("requested address {address} is held by {holder}")]
    AddressTaken {
        /// The requested address.
        address: IpAddr,
        /// Who holds it, `container/ifname`.
        holder: String,
    },
    /// A requested address is its subnet's gateway.
    #[error("requested address {0} is the gateway of its subnet")]
    AddressIsGateway(IpAddr),
    /// Requested addresses for which there is no range set, or no second one.
    #[error("requested addresses {0:?} are in no range set, or share one with another requested address")]
    Unsatisfiable(Vec<IpAddr>),
    /// The attachment has an address of this range set already.
    #[error("{address} is already allocated to {container}/{ifname}")]
    Duplicate {
        /// The address it has.
        address: IpAddr,
        /// The container's id.
        container: String,
        /// The interface's name.
        ifname: String,
    },
    /// CHECK: no address is recorded for the attachment.
    #[error("no address is allocated to {container}/{ifname}")]
    NothingAllocated {
        /// The container's id.
        container: String,
        /// The interface's name.
        ifname: String,
    },
    /// CHECK: an address of the attachment is free, or another attachment's.
    #[error("{address} should be allocated to {container}/{ifname}, but {found}")]
    NotAllocated {
        /// The address.
        address: IpAddr,
        /// The container's id.
        container: String,
        /// The interface's name.
        ifname: String,
        /// `it is free` or `is held by …`.
        found: String,
    },
    /// DEL, GC: addresses could not be released; everything else was.
    #[error("cannot release {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Unreleased(Vec<Error>),
    /// The network's directory.
    #[error(transparent)]
    Leases(#[from] shunt_leases::Error),
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: names the file.
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}
