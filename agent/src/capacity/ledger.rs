//! The books: which attachment was given how much of which uplink.

use std::collections::BTreeMap;
use std::fmt;

use shunt_agent_api::{
    Allocation, AttachmentKey, Bandwidth, CapacityReport, PoolReport, SlotsReport, UplinkReport,
};

use super::uplink::{Totals, Unknown};
use super::{Quantity, Speed, UplinkOptions};

/// What an attachment takes of each direction, in bits a second; 0 is nothing, which is what an unlimited one is
/// guaranteed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Of what the uplink sends: the rate from the container.
    pub egress: u64,
    /// Of what the uplink receives: the rate towards the container.
    pub ingress: u64,
}

impl Demand {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            egress: self.egress.saturating_add(other.egress),
            ingress: self.ingress.saturating_add(other.ingress),
        }
    }
}

impl From<&Bandwidth> for Demand {
    fn from(bandwidth: &Bandwidth) -> Self {
        let rate = |limit: Option<shunt_agent_api::Rate>| limit.map_or(0, |limit| limit.rate);
        Self { egress: rate(bandwidth.egress), ingress: rate(bandwidth.ingress) }
    }
}

/// A direction of an uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What it sends.
    Egress,
    /// What it receives.
    Ingress,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Egress => "egress",
            Self::Ingress => "ingress",
        })
    }
}

/// Why an attachment does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// It asks for more than is left.
    #[error(
        "uplink {uplink} has {free} of {total} bit/s left for {direction}, and {asked} bit/s are asked for"
    )]
    Exceeded {
        /// Which uplink.
        uplink: String,
        /// Which direction.
        direction: Direction,
        /// What is asked for.
        asked: Quantity,
        /// What is left.
        free: Quantity,
        /// What can be handed out.
        total: Quantity,
    },
    /// It is not known what there is.
    #[error("nothing can be promised of uplink {uplink}: {why}")]
    Unknown {
        /// Which uplink.
        uplink: String,
        /// Why.
        why: Unknown,
    },
}

impl Shortage {
    /// Which uplink.
    pub fn uplink(&self) -> &str {
        match self {
            Self::Exceeded { uplink, .. } | Self::Unknown { uplink, .. } => uplink,
        }
    }

    /// Whether the uplink itself is missing.
    pub fn is_no_link(&self) -> bool {
        matches!(self, Self::Unknown { why: Unknown::NoLink, .. })
    }
}

#[derive(Clone, Debug)]
struct Account {
    options: UplinkOptions,
    speed: Speed,
    allocations: BTreeMap<AttachmentKey, Demand>,
}

/// Every declared uplink's account.
///
/// Invariant: an attachment is in one account at most. Where every allocation was first admitted and totals did not
/// shrink, no account is overdrawn; else nothing is free there until it is not.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: BTreeMap<String, Account>,
}

impl Ledger {
    /// Books for these uplinks, whose speeds are not known yet.
    pub fn new(uplinks: &BTreeMap<String, UplinkOptions>) -> Self {
        let account = |options: &UplinkOptions| Account {
            options: options.clone(),
            speed: Speed::Unknown,
            allocations: BTreeMap::new(),
        };
        Self { accounts: uplinks.iter().map(|(name, options)| (name.clone(), account(options))).collect() }
    }

    /// The uplinks' names.
    pub fn uplinks(&self) -> impl Iterator<Item = &str> {
        self.accounts.keys().map(String::as_str)
    }

    /// Notes what a link says of itself. True if that is news.
    pub fn set_speed(&mut self, uplink: &str, speed: Speed) -> bool {
        let Some(account) = self.accounts.get_mut(uplink) else { return false };
        std::mem::replace(&mut account.speed, speed) != speed
    }

    /// Whether an attachment that asks for this fits beside what is promised to others. What it has already counts as free.
    ///
    /// # Errors
    /// [`Shortage`], with the figures.
    pub fn admits(&self, key: &AttachmentKey, demand: Demand, promised: Demand) -> Result<(), Shortage> {
        let Some(uplink) = self.uplink_of(&key.network).filter(|_| demand != Demand::default()) else {
            return Ok(());
        };
        let account = &self.accounts[uplink];
        let totals = account
            .options
            .totals(account.speed)
            .map_err(|why| Shortage::Unknown { uplink: uplink.to_owned(), why })?;
        let taken = account.taken(Some(key)).and(promised);
        for (direction, asked, total, taken) in [
            (Direction::Egress, demand.egress, totals.egress, taken.egress),
            (Direction::Ingress, demand.ingress, totals.ingress, taken.ingress),
        ] {
            let free = total.saturating_sub(taken);
            if asked > free {
                return Err(Shortage::Exceeded {
                    uplink: uplink.to_owned(),
                    direction,
                    asked: Quantity(asked),
                    free: Quantity(free),
                    total: Quantity(total),
                });
            }
        }
        Ok(())
    }

    /// Writes down what an attachment has, whether it fits or not; instead of what it had.
    pub fn allocate(&mut self, key: &AttachmentKey, demand: Demand) {
        self.release(key);
        let uplink = self.uplink_of(&key.network).map(str::to_owned);
        if let Some(account) = uplink.and_then(|uplink| self.accounts.get_mut(&uplink))
            && demand != Demand::default()
        {
            account.allocations.insert(key.clone(), demand);
        }
    }

    /// Gives back what an attachment had, if it had anything.
    pub fn release(&mut self, key: &AttachmentKey) {
        for account in self.accounts.values_mut() {
            account.allocations.remove(key);
        }
    }

    /// The uplink that a network's traffic is counted on.
    pub fn uplink_of(&self, network: &str) -> Option<&str> {
        let named =
            |(_, account): &(&String, &Account)| account.options.networks.iter().any(|n| n == network);
        let open = |(_, account): &(&String, &Account)| account.options.networks.is_empty();
        let found = self.accounts.iter().find(named).or_else(|| self.accounts.iter().find(open));
        found.map(|(name, _)| name.as_str())
    }

    /// The uplinks that are shared out, each with what it sends at most.
    pub fn guaranteed(&self) -> impl Iterator<Item = (&str, Result<u64, Unknown>)> {
        let guaranteed = self.accounts.iter().filter(|(_, account)| account.options.guarantee);
        guaranteed.map(|(name, account)| (name.as_str(), account.options.shared(account.speed)))
    }

    /// Why nothing can be promised of an uplink, for each of which that is so.
    pub fn unknown(&self) -> Vec<Shortage> {
        let accounts = self.accounts.iter();
        let unknown = |(name, account): (&String, &Account)| {
            let why = account.options.totals(account.speed).err()?;
            Some(Shortage::Unknown { uplink: name.clone(), why })
        };
        accounts.filter_map(unknown).collect()
    }

    /// Why an ADD with a rate cannot work, whatever the rate: a direction of which no uplink has anything left.
    pub fn exhausted(&self) -> Option<String> {
        let pools: Vec<_> = self.accounts.values().map(Account::pools).collect();
        let left = |free: fn(&(PoolReport, PoolReport)) -> u64| pools.iter().any(|pools| free(pools) > 0);
        let direction = match (left(|(egress, _)| egress.free), left(|(_, ingress)| ingress.free)) {
            _ if pools.is_empty() => return None,
            (true, true) => return None,
            (false, _) => Direction::Egress,
            (_, false) => Direction::Ingress,
        };
        Some(format!("no {direction} bandwidth is left on any uplink"))
    }

    /// What is left of each uplink: its name, what it sends and what it receives.
    pub fn pools(&self) -> Vec<(String, PoolReport, PoolReport)> {
        let pools = |(name, account): (&String, &Account)| {
            let (egress, ingress) = account.pools();
            (name.clone(), egress, ingress)
        };
        self.accounts.iter().map(pools).collect()
    }

    /// The books, to be shown.
    pub fn report(&self, slots: SlotsReport) -> CapacityReport {
        let uplinks = self.accounts.iter().map(|(name, account)| account.report(name, slots)).collect();
        CapacityReport { uplinks }
    }
}

impl Account {
    /// The sum of what is allocated to all but one.
    fn taken(&self, but: Option<&AttachmentKey>) -> Demand {
        let others = self.allocations.iter().filter(|(key, _)| Some(*key) != but);
        others.fold(Demand::default(), |sum, (_, demand)| sum.and(*demand))
    }

    fn pools(&self) -> (PoolReport, PoolReport) {
        let Demand { egress, ingress } = self.taken(None);
        let totals = self.options.totals(self.speed).unwrap_or(Totals { egress: 0, ingress: 0 });
        let pool = |total: u64, allocated| PoolReport {
            total,
            reserved: self.options.reserve.0,
            allocated,
            free: total.saturating_sub(allocated),
        };
        (pool(totals.egress, egress), pool(totals.ingress, ingress))
    }

    fn report(&self, name: &str, slots: SlotsReport) -> UplinkReport {
        let (egress, ingress) = self.pools();
        let speed = match self.speed {
            Speed::Known(speed) => speed,
            Speed::Unknown | Speed::NoLink => 0,
        };
        let allocation = |(key, demand): (&AttachmentKey, &Demand)| Allocation {
            network: key.network.clone(),
            container: key.container.clone(),
            ifname: key.ifname.clone(),
            egress: demand.egress,
            ingress: demand.ingress,
            claimed: false,
        };
        UplinkReport {
            name: name.to_owned(),
            speed,
            egress,
            ingress,
            slots,
            allocations: self.allocations.iter().map(allocation).collect(),
            unknown: self.options.totals(self.speed).err().map(|why| why.to_string()),
            carried: None,
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
