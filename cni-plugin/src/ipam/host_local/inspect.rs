//! CHECK and STATUS: what is recorded, and what could be.

use std::{collections::HashSet, io::ErrorKind, net::IpAddr, path::Path};

use nix::unistd::{AccessFlags, access};
use serde_json::Value;
use shunt_leases::{Record, Store, addresses_in};

use super::{config::Config, error::Error, request::Request};

/// Whether the attachment still holds its addresses.
///
/// `expected` are the addresses of its result: those of them that lie in the configured ranges must be recorded as the
/// attachment's. With none of these, any recorded address will do, as it does for host-local; the ranges may have been
/// changed since the ADD.
pub fn check(request: &Request<'_>, expected: &[IpAddr]) -> Result<(), Error> {
    let config = Config::parse(request.config, request.ip_ranges)?;
    let attachment = Record::of(request.container, request.ifname);
    let (container, ifname) = (request.container.to_owned(), request.ifname.to_owned());
    let Some(store) = Store::open(&config.data_dir, request.network)? else {
        return Err(Error::NothingAllocated { container, ifname });
    };

    let ours = |address: &&IpAddr| config.sets.iter().any(|set| set.contains(**address));
    let expected: Vec<&IpAddr> = expected.iter().filter(ours).collect();
    for &&address in &expected {
        let found = match store.content(address) {
            None => "it is free".to_owned(),
            Some(content) if Record::parse(&content).may_be(attachment) => continue,
            Some(content) => format!("is held by {}", Record::parse(&content).describe()),
        };
        return Err(Error::NotAllocated { address, container, ifname, found });
    }
    let holds = |address: IpAddr| {
        store.content(address).is_some_and(|content| Record::parse(&content).may_be(attachment))
    };
    if expected.is_empty() && !store.addresses()?.into_iter().any(holds) {
        return Err(Error::NothingAllocated { container, ifname });
    }
    Ok(())
}

/// Whether the configuration can be used; reads no file.
///
/// # Errors
/// [`Error::InvalidConfig`], [`Error::NoRanges`].
pub fn validate(config: &Value, ip_ranges: Option<&Value>) -> Result<(), Error> {
    Config::parse(config, ip_ranges).map(drop)
}

/// Whether an ADD would get at most one address of each family, as results before 0.3.0 can name no more. Reads no
/// file.
///
/// # Errors
/// [`Error::SecondOfFamily`]; whatever [`validate`] finds wrong.
pub fn one_address_per_family(config: &Value, ip_ranges: Option<&Value>) -> Result<(), Error> {
    let config = Config::parse(config, ip_ranges)?;
    for (index, set) in config.sets.iter().enumerate() {
        if config.sets[..index].iter().any(|other| other.is_ipv4() == set.is_ipv4()) {
            let family = if set.is_ipv4() { "IPv4" } else { "IPv6" };
            return Err(Error::SecondOfFamily { family, set: index, ranges: set.to_string() });
        }
    }
    Ok(())
}

/// Whether an ADD would find an address: the configuration is valid, the directory writable, no range set used up.
///
/// Takes no lock and makes no directory.
pub fn status(network: &str, config: &Value, ip_ranges: Option<&Value>) -> Result<(), Error> {
    let config = Config::parse(config, ip_ranges)?;
    let directory = config.data_dir.join(network);
    refuse_unwritable(&directory)?;
    let held: HashSet<IpAddr> = addresses_in(&directory)?.into_iter().collect();
    for (index, set) in config.sets.iter().enumerate() {
        let (taken, capacity) = (set.taken(&held), set.capacity());
        if taken >= capacity {
            return Err(Error::Exhausted { set: index, ranges: set.to_string(), taken, capacity });
        }
    }
    Ok(())
}

/// The directory, or the nearest one above it that exists, must admit new files.
fn refuse_unwritable(directory: &Path) -> Result<(), Error> {
    for directory in directory.ancestors() {
        match access(directory, AccessFlags::W_OK | AccessFlags::X_OK) {
            Ok(()) if directory.is_dir() => return Ok(()),
            Ok(()) => return Err(Error::at(directory)(ErrorKind::NotADirectory.into())),
            Err(nix::errno::Errno::ENOENT) => {}
            Err(errno) => return Err(Error::at(directory)(errno.into())),
        }
    }
    Ok(())
}
