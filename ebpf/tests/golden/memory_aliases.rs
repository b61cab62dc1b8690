//! Sockets' own ports of containers, in memory.

use shunt_dataplane::abi::{Alias, AliasKey};
use shunt_dataplane::tables::Aliases;

use super::memory_tables::MemoryTables;

impl Aliases for MemoryTables {
    fn alias(&self, key: &AliasKey) -> Option<Alias> {
        self.aliases.borrow().get(key).copied()
    }

    fn claim_alias(&self, key: &AliasKey, alias: &Alias) -> bool {
        let is_free = !self.aliases.borrow().contains_key(key);
        if is_free {
            self.aliases.borrow_mut().insert(*key, *alias);
        }
        is_free
    }

    fn renew_alias(&self, key: &AliasKey, alias: &Alias) {
        if let Some(known) = self.aliases.borrow_mut().get_mut(key) {
            *known = *alias;
        }
    }

    fn forget_alias(&self, key: &AliasKey) {
        self.aliases.borrow_mut().remove(key);
    }
}
