//! The addresses of containers that are gone and had flows of the kernel's. `KERNEL_FLOWS` may hold these still, and the next container
//! with such an address may have the same flow again: both of its ends have to look it up, or conntrack sees half of it.

use std::collections::HashSet;

use shunt_dataplane::wire::address::Address;

/// So many are told apart; with more, every new port looks its flows up.
const MOST: usize = 1 << 16;

/// Addresses, each with its bridge.
#[derive(Debug, Default)]
pub(crate) struct Former {
    addresses: HashSet<(u32, Address)>,
    is_full: bool,
}

impl Former {
    pub(super) fn note(&mut self, of: impl IntoIterator<Item = (u32, Address)>) {
        for address in of {
            if self.addresses.len() >= MOST && !self.addresses.contains(&address) {
                self.is_full = true;
                return;
            }
            self.addresses.insert(address);
        }
    }

    /// From now on everybody is one.
    pub(super) fn give_up(&mut self) {
        self.is_full = true;
    }

    pub(super) fn has(&self, of: impl IntoIterator<Item = (u32, Address)>) -> bool {
        self.is_full || of.into_iter().any(|address| self.addresses.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> (u32, Address) {
        (1, std::net::IpAddr::V4(Ipv4Addr::from(number)).into())
    }

    #[test]
    fn an_address_is_one_of_its_bridge() {
        let mut former = Former::default();
        former.note([address(7)]);
        assert!(former.has([address(6), address(7)]));
        assert!(!former.has([address(6)]));
        assert!(!former.has([(2, address(7).1)]));
    }

    #[test]
    fn when_there_are_too_many_everybody_is_one() {
        let mut former = Former::default();
        former.note((0..MOST as u32).map(address));
        former.note([address(7)]);
        assert!(!former.has([address(u32::MAX)]));
        former.note([address(1 << 20)]);
        assert!(former.has([address(u32::MAX)]));
        assert_eq!(former.addresses.len(), MOST);
    }
}
