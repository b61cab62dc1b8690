//! Keeps room for the kernel's flows: entries of `KERNEL_FLOWS` go with conntrack's, and a container that had no room for another
//! ([`AFFINITY_APART`]) comes back once it has.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use shunt_dataplane::abi::{AFFINITY_APART, NO_SLOT};

use super::owners::Owners;
use super::shares::{self, Apart};
use crate::datapath::DatapathError;
use crate::failpoints;
use crate::registry::Attachment;
use crate::resources::Node;

/// Period of the sweep, where there is one.
const PERIOD: Duration = Duration::from_secs(10);

/// The part of the room that all may have which is swept.
const PART: i64 = 4;

impl Node {
    /// Applies the last sweep, and starts another one if there are many entries or a container has no room for more.
    pub(crate) fn sweep_kernel_flows(&mut self) {
        if let Err(error) = self.keep_room() {
            tracing::warn!(%error, "cannot keep room for the kernel's flows");
        }
    }

    fn keep_room(&mut self) -> Result<(), DatapathError> {
        self.datapath.share_kernel_flows(self.registry.len())?;
        if self.kernel_flows.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            match self.kernel_flows.thread.take().map(JoinHandle::join) {
                Some(Ok(Ok(back))) => self.bring_back(&back)?,
                Some(Ok(Err(error))) => tracing::warn!(%error, "cannot sweep the kernel's flows"),
                _ => tracing::error!("the sweep of the kernel's flows has failed"),
            }
        }
        let last = self.kernel_flows.last;
        let is_time = last.is_none_or(|last| failpoints::now().duration_since(last) > PERIOD);
        if !is_time || self.kernel_flows.thread.is_some() {
            return Ok(());
        }
        let all = self.datapath.kernel_share(NO_SLOT)?;
        let may_be_apart = self.kernel_flows.are_apart || self.kernel_flows.refused != all.refused;
        if last.is_some() && all.flows < i64::from(all.most) / PART && !may_be_apart {
            return Ok(());
        }
        let apart = self.all_apart()?;
        let known = &mut self.kernel_flows;
        (known.last, known.are_apart, known.refused) =
            (Some(failpoints::now()), !apart.is_empty(), all.refused);
        let slots = self.registry.attachments().map(|attachment| attachment.slot).collect::<Vec<_>>();
        let (owners, pins) = (Owners::of(&self.registry), self.datapath.pins());
        let sweep = move || shares::sweep(|name| pins.map(name), &owners, &slots, &apart);
        match thread::Builder::new().name("kernel-flows".into()).spawn(sweep) {
            Ok(thread) => self.kernel_flows.thread = Some(thread),
            Err(error) => tracing::warn!(%error, "cannot sweep the kernel's flows"),
        }
        Ok(())
    }

    /// The containers that have had no room for a flow.
    fn all_apart(&self) -> Result<Vec<Apart>, DatapathError> {
        let mut apart = Vec::new();
        for attachment in self.registry.attachments() {
            let port = self.datapath.port(attachment.port.host.index)?;
            if port.is_some_and(|port| port.affinity == AFFINITY_APART) {
                let refused = self.datapath.kernel_share(attachment.slot)?.refused;
                let host = attachment.port.host.index;
                apart.push(Apart { slot: attachment.slot, host, refused });
            }
        }
        Ok(apart)
    }

    /// Has flows looked up again of containers whose flows are all recorded, unless one was refused meanwhile.
    fn bring_back(&mut self, back: &[Apart]) -> Result<(), DatapathError> {
        for Apart { slot, host, refused } in back {
            let attachment = self.registry.by_host(*host).filter(|attachment| attachment.slot == *slot);
            let Some(attachment) = attachment.cloned() else { continue };
            let is_apart = self.datapath.port(*host)?.is_some_and(|port| port.affinity == AFFINITY_APART);
            if !is_apart || self.datapath.kernel_share(*slot)?.refused != *refused {
                continue;
            }
            self.datapath.write_apart(&attachment, false)?;
            // The programs may have put it apart at that moment.
            if self.datapath.kernel_share(*slot)?.refused != *refused {
                self.datapath.write_apart(&attachment, true)?;
            }
        }
        Ok(())
    }

    /// Makes all flows of such containers the kernel's.
    pub(super) fn put_apart(&mut self, of: impl Fn(&Attachment) -> bool) -> Result<(), DatapathError> {
        let attachments: Vec<_> =
            self.registry.attachments().filter(|attachment| of(attachment)).cloned().collect();
        attachments.iter().try_for_each(|attachment| self.datapath.write_apart(attachment, true))
    }

    /// The warning about containers that are apart.
    pub(crate) fn containers_apart(&self) -> Vec<String> {
        let apart = self.all_apart().unwrap_or_default();
        let of = |attachment: &&Attachment| apart.iter().any(|apart| apart.slot == attachment.slot);
        let told = self.registry.attachments().filter(of).map(|attachment| {
            format!(
                "{} has all of the kernel's flows that one container may have: what it sends and gets takes the kernel's path until some \
                 have ended",
                attachment.port.key
            )
        });
        told.collect()
    }
}
