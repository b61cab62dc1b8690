//! Short grace periods: for one call, or until nobody waits for the agent any more.

use super::Kernel;
use crate::bpf::expedite::Expedited;

impl Kernel {
    /// Makes the kernel's waits short while what is returned is held.
    pub fn expedite(&self) -> Expedited {
        self.grace_periods.expedite()
    }

    /// Makes them short until [`Kernel::rest`]: for several calls, and for what the kernel does a moment after it was asked.
    pub fn hasten(&mut self) {
        if self.haste.is_none() {
            self.haste = Some(self.grace_periods.expedite());
        }
    }

    /// Lets them take their time again, unless somebody else wants them short.
    pub fn rest(&mut self) {
        self.haste = None;
    }
}
