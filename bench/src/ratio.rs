//! Ratios of paired measurements. Each round's two figures were taken a moment apart, so what disturbed one mostly
//! disturbed the other: the median of the rounds' ratios says more than a ratio of medians.

use serde::{Deserialize, Serialize};

/// The ratios of all rounds in short.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ratio {
    /// Median.
    pub(crate) median: f64,
    /// 10th percentile: with `high`, the spread.
    pub(crate) low: f64,
    /// 90th percentile.
    pub(crate) high: f64,
    /// Lower end of the median's 95% confidence interval (order statistics, no distribution assumed): what may be
    /// claimed of a rate.
    pub(crate) lower95: f64,
    /// Its upper end: what may be claimed of a latency.
    pub(crate) upper95: f64,
    /// How many rounds.
    pub(crate) rounds: usize,
}

impl Ratio {
    /// Of each of `these` to the one of `those` in the same round; none without rounds.
    pub(crate) fn of(these: &[f64], those: &[f64]) -> Option<Self> {
        let mut ratios: Vec<f64> = these.iter().zip(those).map(|(this, that)| this / that).collect();
        if ratios.is_empty() {
            return None;
        }
        ratios.sort_by(f64::total_cmp);
        let count = ratios.len() as f64;
        // Binomial with p = ½, by its normal approximation.
        let rank = (count / 2.0 + 1.96 * count.sqrt() / 2.0).ceil() as usize;
        let rank = rank.min(ratios.len() - 1);
        Some(Self {
            median: quantile(&ratios, 0.5),
            low: quantile(&ratios, 0.1),
            high: quantile(&ratios, 0.9),
            lower95: ratios[ratios.len() - 1 - rank],
            upper95: ratios[rank],
            rounds: ratios.len(),
        })
    }
}

/// The median; 0 of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// Of sorted values, between the two nearest.
fn quantile(sorted: &[f64], at: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = at * last as f64;
    let below = place.floor() as usize;
    let above = place.ceil() as usize;
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbance_of_both_sides_of_a_round_cancels() {
        let ratio = Ratio::of(&[2.0, 4.0, 400.0], &[1.0, 2.0, 200.0]).unwrap();
        assert_eq!((ratio.median, ratio.upper95), (2.0, 2.0));
    }

    #[test]
    fn the_interval_of_thirty_rounds_leaves_eight_out_at_each_end() {
        let these: Vec<f64> = (1..=30).map(f64::from).collect();
        let ratio = Ratio::of(&these, &[1.0; 30]).unwrap();
        assert_eq!(ratio.median, 15.5);
        assert_eq!((ratio.lower95, ratio.upper95), (9.0, 22.0));
    }

    #[test]
    fn no_rounds_have_no_ratio() {
        assert_eq!(Ratio::of(&[], &[]), None);
    }
}
