//! One thing, measured on several contestants in interleaved rounds: what all of report, charts and `--compare` read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ratio::{Ratio, median};

/// The fast-path share below which a row says nothing about the fast path.
const FAST_ENOUGH: f64 = 0.99;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Better {
    /// A time.
    Less,
    /// A rate.
    More,
}

/// A comparison; the first row is what the others are compared to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Comparison {
    /// What `--only` calls it.
    pub(crate) name: String,
    /// What a person reads.
    pub(crate) title: String,
    /// Of every figure.
    pub(crate) unit: String,
    /// Which figures are better.
    pub(crate) better: Better,
    /// How it was measured: where the ends ran, how many flows.
    pub(crate) setting: String,
    /// The contestants.
    pub(crate) rows: Vec<Row>,
}

/// One contestant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Its name in the file.
    pub(crate) name: String,
    /// What a person reads.
    pub(crate) title: String,
    /// One figure a round.
    pub(crate) figures: Vec<f64>,
    /// The rounds' 99th percentiles in µs; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) p99_us: Vec<f64>,
    /// Of the packets that shunt's containers sent, the share that took the fast path; below 0.99 the row is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fast_share: Option<f64>,
    /// Median of the figures.
    #[serde(default)]
    pub(crate) median: f64,
    /// Of the figures to every other row's, round by round.
    #[serde(default)]
    pub(crate) ratios: BTreeMap<String, Ratio>,
}

impl Row {
    /// A contestant whose figures are still to come.
    pub(crate) fn new(name: &str, title: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            figures: Vec::new(),
            p99_us: Vec::new(),
            fast_share: None,
            median: 0.0,
            ratios: BTreeMap::new(),
        }
    }

    /// Whether too little of it took the fast path for the row to say anything.
    pub(crate) fn is_void(&self) -> bool {
        self.fast_share.is_some_and(|share| share < FAST_ENOUGH)
    }

    /// The median of its 99th percentiles, in µs.
    pub(crate) fn p99(&self) -> Option<f64> {
        (!self.p99_us.is_empty()).then(|| median(&self.p99_us))
    }

    /// Whether it is one of ours.
    pub(crate) fn is_shunt(&self) -> bool {
        self.name.starts_with("shunt")
    }
}

impl Comparison {
    /// Works out medians and ratios, when all rounds are there.
    #[must_use]
    pub(crate) fn judged(mut self) -> Self {
        let figures: Vec<(String, Vec<f64>)> =
            self.rows.iter().map(|row| (row.name.clone(), row.figures.clone())).collect();
        for row in &mut self.rows {
            row.median = median(&row.figures);
            let to = |(name, those): &(String, Vec<f64>)| {
                let ratio = (*name != row.name).then(|| Ratio::of(&row.figures, those)).flatten();
                ratio.map(|ratio| (name.clone(), ratio))
            };
            row.ratios = figures.iter().filter_map(to).collect();
        }
        self
    }

    /// The rounds' 99th percentiles as figures of a comparison of their own; none where they mean nothing.
    pub(crate) fn tails(&self) -> Option<Self> {
        let tail = |row: &Row| Row { figures: row.p99_us.clone(), ..Row::new(&row.name, &row.title) };
        let rows: Vec<Row> = self.rows.iter().map(tail).collect();
        let (name, title) = (format!("{}-p99", self.name), format!("{}, p99", self.title));
        let are_there = rows.iter().all(|row| !row.figures.is_empty());
        are_there.then(|| Self { name, title, unit: "µs".to_owned(), rows, ..self.clone() }.judged())
    }

    /// What the others are compared to.
    pub(crate) fn baseline(&self) -> Option<&Row> {
        self.rows.first()
    }

    /// The row of that name.
    pub(crate) fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Of a row to the baseline; none for the baseline itself.
    pub(crate) fn ratio<'a>(&self, row: &'a Row) -> Option<&'a Ratio> {
        row.ratios.get(&self.baseline()?.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_by_rounds_and_to_every_other_row() {
        let row = |name: &str, figures: &[f64]| Row { figures: figures.to_vec(), ..Row::new(name, name) };
        let comparison = Comparison {
            name: "rr".into(),
            title: "TCP round trip".into(),
            unit: "µs".into(),
            better: Better::Less,
            setting: String::new(),
            rows: vec![row("bare", &[1.0, 10.0, 2.0]), row("shunt", &[2.0, 20.0, 4.0])],
        }
        .judged();
        let shunt = comparison.row("shunt").unwrap();
        assert_eq!((shunt.median, comparison.ratio(shunt).unwrap().median), (4.0, 2.0));
        assert_eq!(comparison.rows[0].ratios["shunt"].median, 0.5);
        assert_eq!(comparison.ratio(&comparison.rows[0]), None);
    }

    #[test]
    fn tails_are_compared_where_every_row_has_them() {
        let row = |name: &str, p99_us: &[f64]| Row { p99_us: p99_us.to_vec(), ..Row::new(name, name) };
        let of = |rows: Vec<Row>| Comparison {
            name: "crr".into(),
            title: "TCP connection".into(),
            unit: "µs".into(),
            better: Better::Less,
            setting: String::new(),
            rows,
        };
        let tails = of(vec![row("portmap", &[4.0, 2.0]), row("shunt", &[2.0, 1.0])]).tails().unwrap();
        assert_eq!((tails.name.as_str(), tails.rows[1].ratios["portmap"].median), ("crr-p99", 0.5));
        assert_eq!(of(vec![row("portmap", &[4.0]), row("shunt", &[])]).tails(), None);
    }

    #[test]
    fn a_row_is_void_when_its_packets_went_another_way() {
        let share = |share| Row { fast_share: share, ..Row::new("shunt", "shunt") }.is_void();
        assert_eq!([None, Some(0.995), Some(0.98)].map(share), [false, false, true]);
    }
}
