//! Who masquerades. The programs see to it while they begin connections, while one that they have begun lives, and while they carry those that the kernel begins
//! behind others' rules. Otherwise all of it is the kernel's, and what the programs need for it is attached nowhere: no packet passes a program that has nothing to translate.
//!
//! All is attached before an entry of `MASQUERADES` is written. It is detached once the second sweep after the last entry has found no
//! connection: the first one may have been there before a program that had still read an entry.

use std::time::{Duration, Instant};

use shunt_dataplane::abi::PORT_MASQUERADED;

use crate::datapath::programs;
use crate::kernel::KernelError;
use crate::registry::Attachment;
use crate::resources::Node;
use crate::resources::node::Entries;

/// Sweeps after the last entry of `MASQUERADES` that have to find no connection, the last of them.
const SWEEPS: u64 = 2;

/// Time for ports at each tick: each waits for the kernel.
const BUDGET: Duration = Duration::from_millis(25);

impl Node {
    /// Whether the programs see to the masquerading of any container.
    pub(crate) fn is_masqueraded_by_programs(&self) -> bool {
        self.masquerade.by_programs && self.is_masqueraded()
    }

    /// Finds out at the start whether an earlier agent's programs saw to it: connections of theirs may live. An older map ABI's do.
    pub(crate) fn find_who_masquerades(&mut self, entries: &Entries) {
        let were_programs = entries.values().any(|entry| entry.flags & PORT_MASQUERADED != 0);
        self.masquerade.by_programs =
            self.datapath.begins_masquerading || were_programs || !self.datapath.older_versions().is_empty();
    }

    /// Takes off the programs that an earlier agent did not come to.
    pub(crate) fn detach_unused_translation(&mut self) {
        let unused = self.registry.attachments().filter(|it| it.is_masqueraded() && !it.is_translated());
        for hook in unused.map(programs::of_translation).collect::<Vec<_>>() {
            if let Err(error) = self.datapath.detach(&hook) {
                tracing::warn!(%hook, %error, "cannot detach");
            }
        }
    }

    /// The programs begin no connections from now on. Without a container they have begun none that lives.
    pub(super) fn note_last_begun(&mut self) {
        self.masquerade.by_programs &= self.is_masqueraded();
        self.masquerade.last_begun = self.sweeping.begun;
        self.sweep_flows_soon();
    }

    /// Decides who masquerades, and attaches or detaches at as many ports as there is time for.
    pub(crate) fn follow_who_masquerades(&mut self) {
        let may_live = self.is_masqueraded_by_programs()
            && self.sweeping.latest_without_masqueraded() < self.masquerade.last_begun + SWEEPS;
        let by_programs = self.datapath.begins_masquerading || may_live || self.carries_any_masqueraded();
        if self.masquerade.by_programs != by_programs {
            tracing::info!(by_programs, "who masquerades has changed");
            self.masquerade.by_programs = by_programs;
            self.update_nat_ingress();
        }
        if let Err(error) = self.change_who_masquerades() {
            tracing::warn!(%error, "cannot switch between programs and kernel for masquerading");
        }
    }

    fn change_who_masquerades(&mut self) -> Result<(), KernelError> {
        if !self.is_masqueraded() {
            return Ok(());
        }
        let by_programs = self.masquerade.by_programs;
        let is_other = |it: &&Attachment| it.is_masqueraded() && it.by_programs != by_programs;
        let others: Vec<_> = self.registry.attachments().filter(is_other).cloned().collect();
        if others.is_empty() {
            return Ok(());
        }
        let expedited = self.kernel.grace_periods().expedite();
        let begun = Instant::now();
        let mut changed = Vec::new();
        for from in others {
            let to = Attachment { by_programs, ..from.clone() };
            self.retranslate(&from, &to)?;
            changed.push(to);
            if begun.elapsed() > BUDGET {
                break;
            }
        }
        drop(expedited);
        if by_programs {
            // What the kernel has begun meanwhile stays with it.
            self.learn_masqueraded()?;
        }
        Ok(changed.iter().try_for_each(|attachment| self.datapath.write_masquerades(attachment))?)
    }

    /// A port's packets are handed on to the program behind only while that is there.
    fn retranslate(&mut self, from: &Attachment, to: &Attachment) -> Result<(), KernelError> {
        let (was, is) = (from.is_translated(), to.is_translated());
        if is && !was {
            self.datapath.ensure(&programs::of_translation(to))?;
        }
        self.datapath.write_mapped(to)?;
        if was && !is {
            self.datapath.detach(&programs::of_translation(from))?;
        }
        self.registry.insert(to.clone());
        Ok(())
    }
}
