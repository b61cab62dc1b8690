//! The limits that claims make of an attachment's, and who may have them.

use shunt_agent_api::{AttachmentKey, BridgePort, Claimed, EventKind, Pod};

use crate::claims::{Claim, Held};
#[cfg(feature = "kubernetes")]
use crate::resources::notice::{Notice, Reason};
use crate::resources::refusal::ClaimFault;
use crate::resources::{Node, Refusal};

/// Gives a port the limits that were asked for, and takes the note of claims away.
pub(crate) fn unclaim(port: &mut BridgePort) {
    if let Some(Claimed { asked, .. }) = port.pod.as_mut().and_then(|pod| pod.claimed.take()) {
        port.bandwidth = asked;
    }
}

impl Node {
    /// A port with the limits of its pod's claims, and the note which claims those are. What was asked for beside them is kept in the note:
    /// it is what holds when they go. A port that is claimed already is judged anew.
    ///
    /// # Errors
    /// [`Refusal::Claim`]: the pod's claims are of other uplinks, or another attachment has them.
    pub(crate) fn claimed(&self, mut port: BridgePort) -> Result<BridgePort, Refusal> {
        unclaim(&mut port);
        let Some(pod) = &mut port.pod else { return Ok(port) };
        let Some(held) = self.held(&port.key, pod)? else { return Ok(port) };
        let asked = std::mem::take(&mut port.bandwidth);
        port.bandwidth = held.limits(&asked);
        pod.claimed = Some(Claimed { claims: held.claims, asked });
        Ok(port)
    }

    /// What a pod's claims have of the uplink of an attachment's network; none where the pod has no claim.
    fn held(&self, key: &AttachmentKey, pod: &Pod) -> Result<Option<Held>, Refusal> {
        if pod.uid.is_empty() {
            return Ok(None);
        }
        let refused = |claim: &Claim, fault, why: String| Refusal::Claim {
            key: key.clone(),
            fault,
            why: format!("{claim} {why}"),
        };
        let Some(first) = self.claims.of_pod(&pod.uid).next() else { return Ok(None) };
        let uplink = self.ledger.uplink_of(&key.network);
        let held = uplink.and_then(|uplink| Held::of(self.claims.of_pod(&pod.uid), uplink));
        let Some(held) = held else {
            let claimed: Vec<_> = first.shares.iter().map(|share| share.uplink.as_str()).collect();
            let network = match uplink {
                Some(uplink) => format!("goes by {uplink}"),
                None => "goes by no declared uplink".to_owned(),
            };
            let why = format!("is of uplink {}, and network {} {network}", claimed.join(", "), key.network);
            return Err(refused(first, ClaimFault::OtherUplink, why));
        };
        match self.holder(key, pod, &held.claims) {
            Some((uid, holder)) => {
                let claim = self.claims.get(uid).unwrap_or(first);
                let why = format!(
                    "limits {holder} already: several attachments cannot have one claim until there are limits of groups"
                );
                Err(refused(claim, ClaimFault::Shared, why))
            }
            None => Ok(Some(held)),
        }
    }

    /// The attachment of another pod, or another interface of the same, that has one of these claims. An earlier sandbox of the pod, whose
    /// DEL may come late, does not count.
    fn holder<'a>(
        &'a self,
        key: &AttachmentKey,
        pod: &Pod,
        claims: &'a [String],
    ) -> Option<(&'a str, &'a AttachmentKey)> {
        self.registry.attachments().find_map(|other| {
            let other_pod = other.port.pod.as_ref()?;
            let has = other_pod.claimed.as_ref()?;
            let is_successor = other_pod.uid == pod.uid
                && other.port.key.network == key.network
                && other.port.key.ifname == key.ifname;
            let uid = claims.iter().find(|uid| has.claims.contains(uid))?;
            (!is_successor).then_some((uid.as_str(), &other.port.key))
        })
    }

    /// Sends the event which limits an attachment has of claims, if it has any.
    pub(crate) fn tell_claimed(&self, port: &BridgePort) {
        let Some(pod) = &port.pod else { return };
        let Some(Claimed { asked, .. }) = &pod.claimed else { return };
        let Ok(Some(held)) = self.held(&port.key, pod) else { return };
        self.events.tell_of(EventKind::Claim, port, held.described(asked));
        #[cfg(feature = "kubernetes")]
        if held.differs_from(asked) {
            let note = format!("the lower one holds each way: {}", held.described(asked));
            self.events.notify(|| Notice { pod: pod.clone(), reason: Reason::LimitsDiffer, note });
        }
    }
}
