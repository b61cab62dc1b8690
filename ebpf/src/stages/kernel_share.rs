//! A container's share of the room for the kernel's flows (`KERNEL_SHARES`): nobody's flood makes another's flow one that is not known.

use crate::Tables;
use crate::abi::{FlowKey, NO_SLOT};

/// Records that a flow of the container with this counter slot is the kernel's. Whether there was room.
#[inline(always)]
pub fn hold<T: Tables>(key: &FlowKey, slot: u32, tables: &T) -> bool {
    let shares = (tables.kernel_share(slot), tables.kernel_share(NO_SLOT));
    let (Some(own), Some(all)) = shares else { return false };
    if !own.has_room(&all) {
        tables.refuse_kernel_flow(slot);
        return false;
    }
    tables.record_kernel_flow(key);
    tables.count_kernel_flow(slot);
    true
}
