//! Interleaved rounds: A B C, B C A, C A B …, so that a disturbance meets all alike and none is always first.

use std::time::{Duration, Instant};

use anyhow::Result;
use shunt_lab::Interrupt;

use crate::screen::Screen;

/// Rounds of one comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    /// What is shown while they run.
    pub(crate) title: &'static str,
    /// How many count.
    pub(crate) count: usize,
    /// How many come before, and are thrown away: they warm caches and resolve neighbours.
    pub(crate) warm_up: usize,
    /// How many take part in each.
    pub(crate) contestants: usize,
}

/// One contestant's turn in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Whose.
    pub(crate) contestant: usize,
    /// The round, those of the warm-up included.
    pub(crate) round: usize,
    /// Whether what it gives is kept.
    pub(crate) counts: bool,
}

impl Rounds {
    /// Lets each contestant have its turn in each round.
    ///
    /// # Errors
    /// The first of a turn's; an interrupt.
    pub(crate) fn run(
        self,
        screen: &mut Screen,
        interrupt: &Interrupt,
        mut take: impl FnMut(Turn) -> Result<()>,
    ) -> Result<()> {
        let begun = Instant::now();
        for (done, turn) in self.turns().enumerate() {
            interrupt.check()?;
            let all = self.contestants * (self.warm_up + self.count);
            screen.progress(done as f64 / all as f64, self.title, left(begun.elapsed(), done, all));
            take(turn)?;
        }
        Ok(())
    }

    fn turns(self) -> impl Iterator<Item = Turn> {
        (0..self.warm_up + self.count).flat_map(move |round| {
            (0..self.contestants).map(move |place| Turn {
                contestant: (place + round) % self.contestants,
                round,
                counts: round >= self.warm_up,
            })
        })
    }
}

/// How long the rest will take, when it is as slow as what is done.
fn left(elapsed: Duration, done: usize, all: usize) -> Option<Duration> {
    (done > 0).then(|| elapsed.mul_f64((all - done) as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_begins_a_round_in_turn_and_the_warm_up_does_not_count() {
        let rounds = Rounds { title: "", count: 2, warm_up: 1, contestants: 3 };
        let turns: Vec<_> = rounds.turns().map(|turn| (turn.contestant, turn.counts)).collect();
        let [w, c] = [false, true];
        assert_eq!(turns, [(0, w), (1, w), (2, w), (1, c), (2, c), (0, c), (2, c), (0, c), (1, c)]);
    }

    #[test]
    fn the_time_left_is_that_of_what_is_not_done() {
        assert_eq!(left(Duration::from_secs(1), 0, 4), None);
        assert_eq!(left(Duration::from_secs(1), 1, 4), Some(Duration::from_secs(3)));
        assert_eq!(left(Duration::from_secs(9), 4, 4), Some(Duration::ZERO));
    }
}
