//! What lasts or has happened, and cannot be seen of the node as it is: since when the API server says nothing of the nodes, and that the
//! node has other addresses or pod CIDRs than before.

use std::time::{Duration, Instant, SystemTime};

use super::learned::Known;
use crate::cluster::{Fault, Member, Reason};

/// A server that is away for less is no event: it is being replaced.
const AWAY: Duration = Duration::from_secs(60);

/// What has happened is told for so long, if the server does not take it before.
const KEPT: Duration = Duration::from_secs(600);

/// What is known of the past.
#[derive(Debug)]
pub(super) struct Passing {
    /// This node, as it was seen last.
    own: Option<Member>,
    silence: Option<Silence>,
    /// At most one of each reason.
    happened: Vec<(Instant, Fault)>,
}

#[derive(Debug)]
struct Silence {
    begun: Instant,
    clock: SystemTime,
    why: String,
}

impl Passing {
    /// Begins with the node as an earlier agent knew it.
    pub(super) const fn new(own: Option<Member>) -> Self {
        Self { own, silence: None, happened: Vec::new() }
    }

    /// Sees what is known now.
    pub(super) fn see(&mut self, known: &Known, node: &str, now: Instant, clock: SystemTime) {
        self.happened.retain(|(at, _)| now.duration_since(*at) < KEPT);
        match (&known.fault, &mut self.silence) {
            (Some(why), Some(silence)) => silence.why.clone_from(why),
            (Some(why), None) => self.silence = Some(Silence { begun: now, clock, why: why.clone() }),
            (None, silence) => {
                if let Some(over) = silence.take() {
                    self.is_back(&over, now);
                }
            }
        }
        let own = known.members.0.get(node);
        if let (Some(before), Some(own)) = (&self.own, own)
            && has_changed(before, own)
        {
            let text = format!(
                "the node's addresses are {:?} and its pod CIDRs {:?}; they were {:?} and {:?}: pods that run keep theirs, delete those of \
                 an earlier pod CIDR",
                own.addresses, own.pod_cidrs, before.addresses, before.pod_cidrs
            );
            self.put(Reason::NodeChanged.fault(text), now);
        }
        if own.is_some() {
            self.own = own.cloned();
        }
    }

    /// That nothing new is known of the nodes, for the status.
    pub(super) fn silence(&self, known: &Known) -> Option<String> {
        let Silence { clock, why, .. } = self.silence.as_ref()?;
        let since = humantime::format_rfc3339_seconds(*clock);
        let nodes = known.members.0.len();
        Some(format!(
            "the nodes are not watched since {since}, and what was known of {nodes} holds meanwhile: {why}"
        ))
    }

    /// What has happened, for events.
    pub(super) fn happened(&self) -> impl Iterator<Item = Fault> {
        self.happened.iter().map(|(_, fault)| fault.clone())
    }

    fn is_back(&mut self, over: &Silence, now: Instant) {
        let away = now.duration_since(over.begun);
        if away < AWAY {
            return;
        }
        let away = Duration::from_secs(away.as_secs());
        tracing::info!(?away, "the nodes are watched again");
        let away = humantime::format_duration(away);
        let text = format!(
            "nothing was heard of the cluster's nodes for {away}, and what was known of them held: {}",
            over.why
        );
        self.put(Reason::ApiServerAway.fault(text), now);
    }

    fn put(&mut self, fault: Fault, now: Instant) {
        self.happened.retain(|(_, known)| known.reason != fault.reason);
        self.happened.push((now, fault));
    }
}

/// Whether what pods and other nodes rely on is another. A node that has had none yet gets it for the first time.
fn has_changed(before: &Member, now: &Member) -> bool {
    differ(&before.addresses, &now.addresses) || differ(&before.pod_cidrs, &now.pod_cidrs)
}

fn differ<T: PartialEq>(before: &[T], now: &[T]) -> bool {
    !before.is_empty() && !now.is_empty() && before != now
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(cidrs: &[&str], address: &str, fault: Option<&str>) -> Known {
        let mut known = Known { fault: fault.map(str::to_owned), ..Known::default() };
        let pod_cidrs = cidrs.iter().map(|cidr| cidr.parse().unwrap()).collect();
        let member = Member { pod_cidrs, addresses: vec![address.parse().unwrap()], ..Member::default() };
        known.members.0.insert("a".to_owned(), member);
        known
    }

    fn texts(passing: &Passing) -> Vec<String> {
        passing.happened().map(|fault| fault.text).collect()
    }

    #[test]
    fn a_server_that_was_away_for_an_hour_is_told_since_when_and_afterwards_for_how_long() {
        let (mut passing, begun) = (Passing::new(None), Instant::now());
        let (silent, back) = (known(&[], "192.0.2.1", Some("refused")), known(&[], "192.0.2.1", None));
        let after = |seconds| begun + Duration::from_secs(seconds);
        let clock = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for second in (0..3600).step_by(5) {
            passing.see(&silent, "a", after(second), clock(second));
        }
        let said = passing.silence(&silent).unwrap();
        assert!(said.contains("since 1970-01-01T00:00:00Z") && said.contains("of 1 holds"), "{said}");
        assert!(texts(&passing).is_empty(), "there is nobody to tell");
        passing.see(&back, "a", after(3600), clock(3600));
        assert_eq!(passing.silence(&back), None);
        assert!(texts(&passing)[0].contains("for 1h,"), "{:?}", texts(&passing));
        passing.see(&back, "a", after(3600 + 601), clock(0));
        assert!(texts(&passing).is_empty());
        // A short one is none.
        passing.see(&silent, "a", after(5000), clock(0));
        passing.see(&back, "a", after(5059), clock(0));
        assert!(texts(&passing).is_empty());
    }

    #[test]
    fn a_node_that_changes_is_told_and_one_that_gets_its_first_pod_cidr_is_not() {
        let (mut passing, now) = (Passing::new(None), Instant::now());
        let mut see = |cidrs: &[&str], address: &str| {
            passing.see(&known(cidrs, address, None), "a", now, SystemTime::UNIX_EPOCH);
            texts(&passing)
        };
        assert!(see(&[], "192.0.2.1").is_empty());
        assert!(see(&["10.244.1.0/24"], "192.0.2.1").is_empty());
        let told = see(&["10.244.1.0/24"], "192.0.2.7");
        assert!(
            told.len() == 1 && told[0].contains("192.0.2.7") && told[0].contains("192.0.2.1"),
            "{told:?}"
        );
        let told = see(&["10.244.9.0/24"], "192.0.2.7");
        assert!(told.len() == 1 && told[0].contains("10.244.9.0/24"), "{told:?}");
    }
}
