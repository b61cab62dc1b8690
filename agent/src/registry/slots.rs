//! Slots of `COUNTERS`.

use std::collections::BTreeSet;

use shunt_dataplane::abi::{MAX_SLOTS, NO_SLOT};

/// Slots of `COUNTERS`.
#[derive(Debug)]
pub struct Slots {
    /// Returned slots, the lowest first: the used part of the map stays small.
    free: BTreeSet<u32>,
    /// The first slot that was never used.
    next: u32,
}

impl Default for Slots {
    fn default() -> Self {
        Self { free: BTreeSet::new(), next: NO_SLOT + 1 }
    }
}

impl Slots {
    /// Takes a free slot; none when every one is taken.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop_first().or_else(|| {
            let slot = (self.next < MAX_SLOTS).then_some(self.next)?;
            self.next += 1;
            Some(slot)
        })
    }

    /// Takes a given slot, which an earlier agent's entry uses. Returns false if it is taken or out of range.
    pub fn claim(&mut self, slot: u32) -> bool {
        if slot == NO_SLOT || slot >= MAX_SLOTS {
            return false;
        }
        while self.next <= slot {
            self.free.insert(self.next);
            self.next += 1;
        }
        self.free.remove(&slot)
    }

    /// How many there are, and how many of them are free.
    pub fn count(&self) -> (u32, usize) {
        (MAX_SLOTS - 1, (MAX_SLOTS - self.next) as usize + self.free.len())
    }

    /// Returns a slot; the shared slot is never freed.
    pub fn give_back(&mut self, slot: u32) {
        if slot != NO_SLOT {
            self.free.insert(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_the_shared_one_is_never_given_out() {
        let mut slots = Slots::default();
        let (one, two) = (slots.take().unwrap(), slots.take().unwrap());
        assert!(one != NO_SLOT && two != NO_SLOT && one != two);
        slots.give_back(one);
        assert_eq!(slots.count(), (MAX_SLOTS - 1, MAX_SLOTS as usize - 2));
        assert_eq!(slots.take(), Some(one));
    }

    #[test]
    fn a_claimed_slot_is_not_given_out_again() {
        let mut slots = Slots::default();
        assert!(slots.claim(3));
        assert!(!slots.claim(3) && !slots.claim(NO_SLOT) && !slots.claim(MAX_SLOTS));
        let given: Vec<_> = (0..3).map_while(|_| slots.take()).collect();
        assert_eq!(given, [1, 2, 4]);
    }

    #[test]
    fn when_every_slot_is_taken_there_is_none() {
        let mut slots = Slots::default();
        assert_eq!((0..).map_while(|_: u32| slots.take()).count() as u32, MAX_SLOTS - 1);
        assert_eq!(slots.take(), None);
    }
}
