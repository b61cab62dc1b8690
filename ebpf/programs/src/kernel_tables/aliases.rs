//! `ALIASES`.

use shunt_dataplane::abi::{Alias, AliasKey};
use shunt_dataplane::tables::Aliases;

use super::KernelTables;
use super::update::{EXIST, NOEXIST};
use crate::maps::ALIASES;

impl Aliases for KernelTables {
    #[inline(always)]
    fn alias(&self, key: &AliasKey) -> Option<Alias> {
        // SAFETY: an entry is written by its socket only; one that is replaced meanwhile is read as a mixture at worst, of which the
        // checks of its ports and its time let nothing wrong through for long.
        unsafe { ALIASES.get(key) }.copied()
    }

    #[inline(always)]
    fn claim_alias(&self, key: &AliasKey, alias: &Alias) -> bool {
        ALIASES.insert(key, alias, NOEXIST).is_ok()
    }

    #[inline(always)]
    fn renew_alias(&self, key: &AliasKey, alias: &Alias) {
        // It may have made room meanwhile: the next question makes it again.
        let _ = ALIASES.insert(key, alias, EXIST);
    }

    #[inline(always)]
    fn forget_alias(&self, key: &AliasKey) {
        // Another socket may have been first.
        let _ = ALIASES.remove(key);
    }
}
