//! ADD: one address out of each range set.

use std::{collections::HashSet, net::IpAddr};

use shunt_leases::{Record, Store};

use super::{
    config::Config,
    error::Error,
    range::Range,
    range_set::RangeSet,
    request::{AllocatedIp, Allocation, Request},
    resolv_conf,
    round_robin::RoundRobin,
    wishes::{Wish, assign},
};
use crate::result::Dns;

/// Addresses that are asked for one by one before all that are held are listed. Mostly the first one is free.
const ASKED: usize = 16;

/// Gives the attachment an address of each range set, a requested one where one was requested.
///
/// # Errors
/// Nothing is held afterwards that was not held before: not the addresses of the other range sets either.
pub fn add(request: &Request<'_>) -> Result<Allocation, Error> {
    let config = Config::parse(request.config, request.ip_ranges)?;
    let wishes = assign(&config.sets, &request.requested)?;
    let dns = match &config.resolv_conf {
        Some(path) => resolv_conf::read(path).map_err(Error::at(path))?,
        None => Dns::default(),
    };
    let store = Store::open_or_create(&config.data_dir, request.network)?;
    let mut allocator = Allocator { request, store: &store, ips: Vec::new() };
    match allocator.allocate(&config.sets, &wishes) {
        Ok(()) => Ok(Allocation { ips: allocator.ips, routes: config.routes, dns }),
        Err(error) => {
            allocator.undo();
            Err(error)
        }
    }
}

/// One ADD in progress, under the network's lock.
struct Allocator<'a> {
    request: &'a Request<'a>,
    store: &'a Store,
    ips: Vec<AllocatedIp>,
}

impl Allocator<'_> {
    fn allocate(&mut self, sets: &[RangeSet], wishes: &[Wish<'_>]) -> Result<(), Error> {
        // Without a free choice there is nothing to read: the files' exclusive creation says it all.
        let choosing = wishes.iter().any(Option::is_none);
        if choosing {
            self.refuse_duplicate(sets, wishes, &self.store.candidates(self.record())?)?;
        }
        for (index, (set, wish)) in sets.iter().zip(wishes).enumerate() {
            match wish {
                Some((address, range)) => self.take_requested(index, range, *address)?,
                None => self.take_next(index, set)?,
            }
        }
        Ok(())
    }

    /// Refuses to choose a second address out of a range set. A requested one may be a second one, as with host-local.
    ///
    /// `candidates` are the container's; their files tell the interface.
    fn refuse_duplicate(
        &self,
        sets: &[RangeSet],
        wishes: &[Wish<'_>],
        candidates: &[IpAddr],
    ) -> Result<(), Error> {
        let choosing = || sets.iter().zip(wishes).filter(|(_, wish)| wish.is_none()).map(|(set, _)| set);
        let in_question = candidates.iter().filter(|address| choosing().any(|set| set.contains(**address)));
        for &address in in_question {
            let content = self.store.content(address);
            if content.is_some_and(|content| Record::parse(&content).may_be(self.record())) {
                return Err(Error::Duplicate {
                    address,
                    container: self.request.container.to_owned(),
                    ifname: self.request.ifname.to_owned(),
                });
            }
        }
        Ok(())
    }

    fn take_requested(&mut self, index: usize, range: &Range, address: IpAddr) -> Result<(), Error> {
        if self.take(index, range, address)? {
            return Ok(());
        }
        let content = self.store.content(address).unwrap_or_default();
        Err(Error::AddressTaken { address, holder: Record::parse(&content).describe() })
    }

    fn take_next(&mut self, index: usize, set: &RangeSet) -> Result<(), Error> {
        let mut held = HashSet::new();
        for (at, (address, range)) in RoundRobin::new(set, self.store.last_reserved(index)).enumerate() {
            if at == ASKED {
                held.extend(self.store.addresses()?);
            }
            if !held.contains(&address) && self.take(index, range, address)? {
                return Ok(());
            }
        }
        let taken = set.taken(&self.store.addresses()?);
        Err(Error::Exhausted { set: index, ranges: set.to_string(), taken, capacity: set.capacity() })
    }

    /// Takes the address unless another attachment holds it.
    fn take(&mut self, index: usize, range: &Range, address: IpAddr) -> Result<bool, Error> {
        if !self.store.reserve(address, self.record())? {
            return Ok(false);
        }
        let (prefix, gateway) = (range.prefix_length(), Some(range.gateway()));
        self.ips.push(AllocatedIp { address, prefix, gateway });
        self.store.note_last_reserved(index, address)?;
        Ok(true)
    }

    /// Gives back what this ADD took; the error that made it fail is the one to report.
    fn undo(&self) {
        for ip in &self.ips {
            let _ = self.store.release(ip.address, self.record());
        }
    }

    fn record(&self) -> Record<'_> {
        Record::of(self.request.container, self.request.ifname)
    }
}
