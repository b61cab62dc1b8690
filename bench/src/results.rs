//! `results.json`: the raw rounds, and what they come to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::add_del::AddDel;
use crate::header::Header;
use crate::ratio::Ratio;
use crate::rounds::Rounds;

/// The file's schema; raised when a field changes its meaning.
const SCHEMA: u32 = 1;

/// Everything of one run.
#[derive(Debug, Serialize)]
pub(crate) struct Results {
    schema: u32,
    header: Header,
    rounds: Vec<Rounds>,
    summary: Vec<Summary>,
    add_del: Option<AddDel>,
}

/// One contestant in one workload.
#[derive(Debug, Serialize)]
struct Summary {
    workload: &'static str,
    name: String,
    unit: &'static str,
    /// Median of the rounds.
    figure: f64,
    /// Median of the rounds' 99th percentiles, in µs; none for a rate.
    p99_us: Option<f64>,
    /// Of the figure to each contestant's, by rounds.
    ratios: BTreeMap<String, Ratio>,
    /// Shunt's fast-path share, over the whole run; below 0.99 the row is void.
    fast_share: Option<f64>,
}

impl Results {
    /// Nothing measured yet.
    pub(crate) fn new(header: Header) -> Self {
        Self { schema: SCHEMA, header, rounds: Vec::new(), summary: Vec::new(), add_del: None }
    }

    /// Adds a workload; `shares` are the contestants' fast-path shares.
    pub(crate) fn add_rounds(&mut self, rounds: Rounds, shares: &[Option<f64>]) {
        for (index, row) in rounds.rows.iter().enumerate() {
            self.summary.push(Summary {
                workload: rounds.workload.title(),
                name: row.name.clone(),
                unit: rounds.workload.unit(),
                figure: rounds.figure(index),
                p99_us: rounds.p99(index),
                ratios: rounds.ratios(index),
                fast_share: shares.get(index).copied().flatten(),
            });
        }
        self.rounds.push(rounds);
    }

    /// Adds the plugins' times.
    pub(crate) fn add_plugin_times(&mut self, times: AddDel) {
        self.add_del = Some(times);
    }

    /// Writes `results.json` into `directory`, which is made.
    pub(crate) fn write(&self, directory: &Path) -> Result<PathBuf> {
        std::fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
        let path = directory.join("results.json");
        let text = serde_json::to_string_pretty(self).context("write results as JSON")?;
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }
}
