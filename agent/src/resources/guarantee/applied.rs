//! Has the uplink's queue be as it is to be.

use shunt_netlink::tc::shares::Root;

use crate::capacity::uplink::Unknown;
use crate::kernel::{FoundShares, Shares};
use crate::resources::reconcile::{Cause, Resource};
use crate::resources::{Finding, Gravity, Node, Refusal};

/// Roots that are one queue, as the kernel chooses them (`net.core.default_qdisc`, `noqueue` for devices of software).
const SINGLE: [&str; 7] = ["", "noqueue", "pfifo_fast", "pfifo", "fq_codel", "fq", "cake"];

/// The queue of one uplink.
pub(crate) struct Guarantee {
    uplink: String,
    total: Result<u64, Unknown>,
}

impl Guarantee {
    /// Every one that is configured.
    pub(crate) fn all(node: &Node) -> Vec<Self> {
        let guaranteed = node.ledger.guaranteed();
        guaranteed.map(|(uplink, total)| Self { uplink: uplink.to_owned(), total }).collect()
    }

    /// The link, whether ours is at its root, what is there, and what is to be.
    fn look(&self, node: &mut Node) -> Result<(u32, bool, FoundShares, Shares), Refusal> {
        let refused = |why: String| Refusal::Uplink { name: self.uplink.clone(), why };
        let unknown = |why: Unknown| refused(format!("is not shared out: {why}"));
        let total = self.total.map_err(unknown)?;
        let link = node.kernel.link_named(&self.uplink)?;
        let index = link.ok_or_else(|| unknown(Unknown::NoLink))?.index;
        let wanted = node.desired_shares(&self.uplink, total);
        match node.kernel.root_queue(index)? {
            Root::Shared => Ok((index, true, node.kernel.shares(index)?, wanted)),
            Root::Kernel(kind) if SINGLE.contains(&&*kind) => {
                Ok((index, false, FoundShares::default(), wanted))
            }
            Root::Kernel(kind) => Err(refused(format!(
                "sends by several hardware queues (`{kind}` is at its root), and a rate can be kept on one only: set guarantee = false"
            ))),
            Root::Other(kind) => Err(refused(format!(
                "has `{kind}` at its root, which somebody else has put there: remove that (tc qdisc delete dev {} root) or set \
                 guarantee = false",
                self.uplink
            ))),
        }
    }
}

impl Resource for Guarantee {
    fn name(&self) -> String {
        format!("the guarantee of {}", self.uplink)
    }

    fn gravity(&self) -> Gravity {
        Gravity::Warning
    }

    fn ifname(&self) -> &str {
        &self.uplink
    }

    fn observe(&self, node: &mut Node) -> Result<Vec<Finding>, Refusal> {
        let (_, has_root, found, wanted) = self.look(node)?;
        if !has_root {
            return Ok(vec![Finding::Queue(format!("the queue of {} is missing", self.uplink))]);
        }
        let wrong = [
            ("classes are missing or altered", found.missing_classes(&wanted).len()),
            ("classes are nobody's", found.surplus_classes(&wanted).len()),
            ("filters are missing", found.missing_filters(&wanted).len()),
            ("filters are nobody's", found.surplus_filters(&wanted).len()),
        ];
        let wrong = wrong.into_iter().filter(|(_, count)| *count > 0);
        Ok(wrong.map(|(what, count)| Finding::Queue(format!("{count} {what}"))).collect())
    }

    fn apply(&self, node: &mut Node, _: Cause<'_>) -> Result<(), Refusal> {
        let (index, has_root, found, wanted) = self.look(node)?;
        node.kernel.share_out(index, has_root, &found, &wanted)?;
        node.guaranteed.insert(self.uplink.clone(), wanted);
        Ok(())
    }

    fn is_beyond_repair(&self, _: &mut Node, _: &[Finding]) -> bool {
        false
    }
}

impl Node {
    /// Gives what has claims now its share, and takes the others' away.
    pub(crate) fn update_guarantees(&mut self) {
        let mut is_changed = false;
        for guarantee in Guarantee::all(self) {
            let Ok(total) = guarantee.total else { continue };
            let wanted = self.desired_shares(&guarantee.uplink, total);
            if self.guaranteed.get(&guarantee.uplink) != Some(&wanted) {
                self.begin(&guarantee);
                // What is refused is tried again each second, and not with each request.
                self.guaranteed.insert(guarantee.uplink, wanted);
                is_changed = true;
            }
        }
        // Which packets the kernel routes are whose.
        if is_changed && let Err(error) = self.set_rules() {
            self.warn(format!("cannot set the nf_tables rules: {error}"));
        }
    }
}
