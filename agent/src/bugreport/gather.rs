//! Has every part at once, each by a thread of its own, and waits no longer than until the deadline.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use super::part::{Job, Lack, Outcome};

/// Of the time that there is, what a part leaves for being handed over.
const MARGIN: Duration = Duration::from_millis(300);

/// What became of each part, in the order of the jobs. A thread that hangs ends with the process.
pub(super) fn gather(jobs: Vec<Job>, by: Instant) -> Vec<(&'static str, Outcome)> {
    let (done, outcomes) = channel();
    let due = by.checked_sub(MARGIN).unwrap_or(by);
    let mut all: Vec<(&'static str, Option<Outcome>)> = Vec::new();
    for (index, Job { file, work }) in jobs.into_iter().enumerate() {
        let done = done.clone();
        let work = move || {
            // Whoever waited may have gone on.
            let _late = done.send((index, work(due)));
        };
        let made = thread::Builder::new().name("part".to_owned()).spawn(work);
        let failed = made.err().map(|error| Outcome(Err(Lack::Failed(format!("no thread: {error}")))));
        all.push((file, failed));
    }
    drop(done);
    while let Ok((index, outcome)) = outcomes.recv_timeout(by.saturating_duration_since(Instant::now())) {
        if let Some((_, place)) = all.get_mut(index) {
            *place = Some(outcome);
        }
    }
    let late = || Outcome(Err(Lack::Failed("it was not had in time".to_owned())));
    all.into_iter().map(|(file, outcome)| (file, outcome.unwrap_or_else(late))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::part::Had;
    use super::*;

    #[test]
    fn a_part_that_hangs_is_late_and_keeps_no_other_out() {
        let jobs = vec![
            Job::new("slow", |_| {
                thread::sleep(Duration::from_secs(5));
                Ok(Had::text("slow"))
            }),
            Job::new("quick", |_| Ok(Had::text("quick"))),
            Job::new("none", |_| Err(Lack::Absent("nothing".into()))),
        ];
        let begun = Instant::now();
        let outcomes = gather(jobs, begun + Duration::from_millis(500));
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        let files: Vec<_> = outcomes.iter().map(|(file, outcome)| (*file, outcome.0.is_ok())).collect();
        assert_eq!(files, [("slow", false), ("quick", true), ("none", false)]);
        assert!(format!("{outcomes:?}").contains("not had in time"));
    }
}
