//! Which faults of the node are to be events now: each reason once when it begins, again when its words change, and again after a while,
//! for events are kept for an hour only.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::cluster::{Fault, Reason};

/// No reason has two events within this time.
const PAUSE: Duration = Duration::from_secs(60);

/// A fault that lasts is told again after this time.
const AGAIN: Duration = Duration::from_secs(1800);

/// The events that were written last.
///
/// Invariant: one of each reason.
#[derive(Debug, Default)]
pub(super) struct Due(HashMap<Reason, Event>);

#[derive(Debug)]
struct Event {
    note: String,
    at: Instant,
    /// Whether the fault was gone meanwhile.
    is_over: bool,
}

impl Due {
    /// What is to be written, of what is wrong at this time: a reason and its note.
    pub(super) fn see(&mut self, faults: &[Fault], now: Instant) -> Vec<(Reason, String)> {
        let mut notes: Vec<(Reason, String)> = Vec::new();
        for fault in faults {
            let Some(reason) = fault.reason else { continue };
            match notes.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, note)) => *note = format!("{note}; {}", fault.text),
                None => notes.push((reason, fault.text.clone())),
            }
        }
        for (reason, event) in &mut self.0 {
            event.is_over |= !notes.iter().any(|(present, _)| present == reason);
        }
        notes.retain(|(reason, note)| self.0.get(reason).is_none_or(|event| event.is_due(note, now)));
        notes
    }

    /// It is written.
    pub(super) fn written(&mut self, reason: Reason, note: String, now: Instant) {
        self.0.insert(reason, Event { note, at: now, is_over: false });
    }
}

impl Event {
    fn is_due(&self, note: &str, now: Instant) -> bool {
        let ago = now.duration_since(self.at);
        ago >= PAUSE && (self.is_over || self.note != note || ago >= AGAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(text: &str) -> Fault {
        Reason::PodCidrMissing.fault(text.to_owned())
    }

    #[test]
    fn a_fault_is_told_when_it_begins_changes_or_lasts_and_never_more_than_once_a_minute() {
        let (mut due, begun) = (Due::default(), Instant::now());
        let after = |seconds| begun + Duration::from_secs(seconds);
        let told = |due: &mut Due, faults: &[Fault], at: Instant| {
            let notes = due.see(faults, at);
            for (reason, note) in &notes {
                due.written(*reason, note.clone(), at);
            }
            notes.into_iter().map(|(_, note)| note).collect::<Vec<_>>()
        };
        assert_eq!(told(&mut due, &[missing("one")], begun), ["one"]);
        assert_eq!(told(&mut due, &[missing("two")], after(59)), [""; 0]);
        assert_eq!(told(&mut due, &[missing("two")], after(60)), ["two"]);
        assert_eq!(told(&mut due, &[missing("two")], after(600)), [""; 0]);
        assert_eq!(told(&mut due, &[missing("two")], after(60 + 1800)), ["two"]);
        // One that comes and goes.
        for second in 1860..1919 {
            let faults = if second % 2 == 0 { vec![missing("two")] } else { vec![] };
            assert_eq!(told(&mut due, &faults, after(second)), [""; 0]);
        }
        assert_eq!(told(&mut due, &[missing("two")], after(1921)), ["two"]);
    }

    #[test]
    fn faults_of_one_reason_are_one_event_and_those_of_other_nodes_none() {
        let faults = [missing("one"), Fault::from("elsewhere".to_owned()), missing("two")];
        let notes = Due::default().see(&faults, Instant::now());
        assert_eq!(notes, [(Reason::PodCidrMissing, "one; two".to_owned())]);
    }

    #[test]
    fn what_could_not_be_written_is_due_still() {
        let mut due = Due::default();
        let now = Instant::now();
        assert_eq!(due.see(&[missing("one")], now), due.see(&[missing("one")], now));
    }
}
