//! Forgets prepared claims that the API server says nobody has any more: a kubelet that has lost its own state never has them unprepared,
//! and what they wait for would be kept from annotations for good.
//!
//! A claim is looked up while nothing attached has it. It is over where the server names it as not found, has another one of its name, or
//! reserves it for no pod or others. That has to be so at every look for a while: a kubelet that has not heard of it yet may still have the
//! pod's sandbox made. A server that is away, forbids or says anything else has said nothing of any claim.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use k8s_openapi::api::resource::v1::ResourceClaim;
use shunt_kubelet::ClaimName;
use tokio::time::sleep;

use super::driver::ClaimDriver;
use crate::claims::Claim;

/// How often it is looked, at most and at least.
const OFTEN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(60);

/// Claims that are looked up at a time: each is a request to the API server.
const TOGETHER: usize = 32;

/// Looks as long as the agent runs.
pub(super) async fn keep(driver: &ClaimDriver) -> Infallible {
    let after = Duration::from_secs(driver.options.forget_claims_after);
    if after.is_zero() {
        return std::future::pending().await;
    }
    let mut over = Over::default();
    loop {
        sleep((after / 4).clamp(OFTEN, SELDOM)).await;
        look(driver, &mut over, after).await;
    }
}

/// Since when claims are over, by their UIDs, and the last one that was looked up.
#[derive(Debug, Default)]
struct Over {
    since: BTreeMap<String, Instant>,
    last: String,
}

impl Over {
    /// Those of these claims that are to be looked up now: each in its turn.
    fn next<'a>(&mut self, waiting: &'a [Claim]) -> Vec<&'a Claim> {
        self.since.retain(|uid, _| waiting.iter().any(|claim| claim.uid == *uid));
        let behind = waiting.iter().filter(|claim| claim.uid > self.last);
        let before = waiting.iter().filter(|claim| claim.uid <= self.last);
        let next: Vec<_> = behind.chain(before).take(TOGETHER).collect();
        self.last = next.last().map(|claim| claim.uid.clone()).unwrap_or_default();
        next
    }

    /// What the server says of a claim now; whether it has said for long enough that it is over.
    fn is_over(&mut self, uid: &str, is_over: bool, now: Instant, after: Duration) -> bool {
        if !is_over {
            self.since.remove(uid);
            return false;
        }
        let since = *self.since.entry(uid.to_owned()).or_insert(now);
        now.saturating_duration_since(since) >= after
    }
}

async fn look(driver: &ClaimDriver, over: &mut Over, after: Duration) {
    let Some(waiting) = driver.core.with(|agent| agent.node().waiting_claims()).await else { return };
    for claim in over.next(&waiting) {
        let Claim { namespace, name, uid, .. } = claim.clone();
        let read = driver.read(&ClaimName { namespace, name: name.clone(), uid: uid.clone() }).await;
        let said = match read {
            Ok(found) => is_others(&found, claim),
            Err(error) if error.is_of_missing(&name) => true,
            // Of the others it would say no more.
            Err(_) => return,
        };
        if over.is_over(&uid, said, Instant::now(), after) {
            forget(driver, claim).await;
        }
    }
}

/// Whether the claim of this name is another one by now, or is not its pod's any more.
fn is_others(found: &ResourceClaim, claim: &Claim) -> bool {
    let reserved = found.status.as_ref().and_then(|status| status.reserved_for.as_deref());
    let is_its_pods = reserved.unwrap_or_default().iter().any(|pod| pod.uid == claim.pod.uid);
    found.metadata.uid.as_ref() != Some(&claim.uid) || !is_its_pods
}

async fn forget(driver: &ClaimDriver, claim: &Claim) {
    let known = claim.clone();
    let forgotten = driver.core.with(move |agent| agent.node().forget_claim(&known)).await;
    match forgotten {
        Some(Ok(true)) => {
            tracing::warn!(%claim, pod = claim.pod.name, "forgotten: the API server says that its pod has it no more");
        }
        Some(Err(error)) => tracing::warn!(%claim, %error, "cannot be forgotten"),
        Some(Ok(false)) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_secs(600);

    #[test]
    fn a_claim_has_to_be_over_at_every_look_for_a_while() {
        let mut over = Over::default();
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert!(!over.is_over("1", true, at(0), AFTER));
        assert!(!over.is_over("1", true, at(599), AFTER));
        assert!(over.is_over("1", true, at(600), AFTER));
        assert!(!over.is_over("1", false, at(601), AFTER), "it is back");
        assert!(!over.is_over("1", true, at(1200), AFTER));
        assert!(!over.is_over("2", true, at(1200), AFTER), "another one");
    }

    #[test]
    fn each_of_many_claims_has_its_turn() {
        let claim = |number: usize| Claim { uid: format!("{number:03}"), ..Claim::default() };
        let waiting: Vec<_> = (0..TOGETHER * 2 + 5).map(claim).collect();
        let mut over = Over::default();
        let mut seen: Vec<_> =
            (0..3).flat_map(|_| over.next(&waiting)).map(|claim| claim.uid.clone()).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), waiting.len());
        assert!(over.next(&[]).is_empty());
    }
}
