//! What is kept by counter slot: `POLICERS`, `SHARES` and `COUNTERS`; `KERNEL_SHARES` is cleared here.

use shunt_dataplane::abi::KernelShare;
use shunt_dataplane::abi::policer::{Policer, Storm, storm_slot};
use shunt_dataplane::abi::share::Share;

use crate::datapath::{Datapath, DatapathError, encode, in_map};
use crate::registry::Attachment;

impl Datapath {
    /// Writes a port's policer and its share of the tables of connections, and keeps its debts.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_policer(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        for (slot, policer) in encode::policers(attachment) {
            if self.policer(slot)? != policer {
                self.maps.policers.set(slot, policer, 0).map_err(in_map("POLICERS"))?;
            }
        }
        self.write_share(attachment.slot)?;
        self.write_subnets(attachment)
    }

    /// Writes the limits of a container's share; what it has stays counted.
    fn write_share(&mut self, slot: u32) -> Result<(), DatapathError> {
        let known = self.maps.shares.get(&slot, 0).map_err(in_map("SHARES"))?;
        let Share { most, price, .. } = self.share;
        if (known.most, known.price) == (most, price) {
            return Ok(());
        }
        self.maps.shares.set(slot, Share { most, price, ..known }, 0).map_err(in_map("SHARES"))
    }

    /// Clears the counters, the share and the policer's debt of an earlier port.
    ///
    /// # Errors
    /// The kernel's.
    pub fn clear_slot(&mut self, slot: u32) -> Result<(), DatapathError> {
        for policer in [slot, storm_slot(slot, Storm::Broadcast), storm_slot(slot, Storm::Multicast)] {
            self.maps.policers.set(policer, Policer::default(), 0).map_err(in_map("POLICERS"))?;
        }
        self.maps.shares.set(slot, Share::default(), 0).map_err(in_map("SHARES"))?;
        self.maps.kernel_shares.set(slot, KernelShare::default(), 0).map_err(in_map("KERNEL_SHARES"))?;
        self.maps.clear_counters(slot).map_err(in_map("COUNTERS"))
    }

    /// A slot's policer without its debt.
    pub fn policer(&self, slot: u32) -> Result<Policer, DatapathError> {
        let policer = self.maps.policers.get(&slot, 0).map_err(in_map("POLICERS"))?;
        Ok(Policer { due: 0, ..policer })
    }
}
