//! The maps of translated connections in memory: what the programs do with them in the kernel.

use std::cell::RefCell;
use std::collections::BTreeMap;

use shunt_dataplane::abi::share::Share;
use shunt_dataplane::abi::translation::{Translation, TupleKey};
use shunt_dataplane::nat::connection::{Direction, Fate, is_assured};
use shunt_dataplane::tables::{Claimant, Followed, Inserted};

use super::memory_tables::MemoryTables;

impl MemoryTables {
    /// An entry, of whichever map.
    pub(super) fn flow(&self, key: &TupleKey) -> Option<Translation> {
        let kept = self.assured.borrow().get(key).copied();
        kept.or_else(|| self.flows.borrow().get(key).copied())
    }

    /// As the trait's `follow`.
    pub(super) fn follow_flow(
        &self,
        (mine, other): (&TupleKey, &mut TupleKey),
        packet: Option<&Followed>,
        judge: impl FnOnce(Direction, Direction) -> Fate,
    ) -> Option<Fate> {
        let mut own = self.flow(mine)?;
        (other.destination, other.destination_port) = (own.becomes.source, own.becomes.source_port);
        let others = self.flow(other)?;
        if !own.belongs_to(mine, &others) {
            return None;
        }
        let fate = judge(own.direction(), others.direction());
        let (Fate::Continues, Some(packet)) = (fate, packet) else { return Some(fate) };
        let shown = own.shown;
        own.advance(&others, packet.step, packet.now);
        own.packets += 1;
        own.bytes += u64::from(packet.bytes);
        self.put(mine, own);
        if own.answers(shown, &others) {
            self.pay_back(own.slot(), own.side());
        }
        let is_kept = self.assured.borrow().contains_key(mine);
        match is_assured(&own, &others, packet.now) {
            true if !is_kept => self.assure([(*other, others), (*mine, own)]),
            false if is_kept => self.release([(*other, others), (*mine, own)]),
            _ => {}
        }
        Some(fate)
    }

    /// Somebody's claims.
    pub(super) fn claims_of(&self, by: Claimant) -> &RefCell<BTreeMap<TupleKey, u64>> {
        match by {
            Claimant::Own => &self.own_claims,
            Claimant::Masqueraded => &self.claims,
        }
    }

    /// As the trait's `insert_flow`.
    pub(super) fn insert(&self, key: &TupleKey, value: &Translation) -> Inserted {
        if self.flow(key).is_some() {
            return Inserted::Exists;
        }
        self.flows.borrow_mut().insert(*key, *value);
        Inserted::New
    }

    /// Overwrites an entry where it is.
    pub(super) fn put(&self, key: &TupleKey, value: Translation) {
        let mut assured = self.assured.borrow_mut();
        match assured.get_mut(key) {
            Some(entry) => *entry = value,
            None => _ = self.flows.borrow_mut().insert(*key, value),
        }
    }

    /// Copies a connection to `assured`, if both of its entries fit.
    pub(super) fn assure(&self, entries: [(TupleKey, Translation); 2]) {
        let mut assured = self.assured.borrow_mut();
        let new = entries.iter().filter(|(key, _)| !assured.contains_key(key)).count();
        let has_room = self.shares.borrow().get(&entries[1].1.slot()).is_none_or(Share::has_room);
        if assured.len() + new > self.room || !has_room {
            return;
        }
        for (key, value) in entries {
            if assured.insert(key, value).is_none() {
                self.count_assured(entries[1].1.slot(), 1);
            }
        }
    }

    /// Takes a connection out of it again.
    pub(super) fn release(&self, entries: [(TupleKey, Translation); 2]) {
        for (key, value) in entries {
            self.flows.borrow_mut().insert(key, value);
            if self.assured.borrow_mut().remove(&key).is_some() {
                self.count_assured(entries[1].1.slot(), -1);
            }
        }
    }

    pub(super) fn count_assured(&self, slot: u32, entries: i64) {
        self.shares.borrow_mut().entry(slot).or_default().assured += entries;
    }

    pub(super) fn pay_back(&self, slot: u32, side: usize) {
        let mut shares = self.shares.borrow_mut();
        let share = shares.entry(slot).or_default();
        let due = &mut share.due[side];
        *due = due.checked_sub(share.price.into()).unwrap_or(*due);
    }
}
