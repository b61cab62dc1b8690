//! What one measurement gave.

use std::time::Duration;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::PATIENCE;

/// Rate and latencies of one measurement.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sample {
    /// Operations that were completed.
    pub operations: u64,
    /// Operations that got no answer; only UDP loses any.
    pub lost: u64,
    /// Wall time, in seconds.
    pub seconds: f64,
    /// Median latency in microseconds; none where only the rate is measured.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
}

impl Sample {
    /// Operations in a second.
    pub fn per_second(&self) -> f64 {
        self.operations as f64 / self.seconds
    }
}

/// Latencies being gathered.
pub(super) struct Latencies {
    histogram: Histogram<u64>,
}

impl Latencies {
    pub(super) fn new() -> Result<Self> {
        let most = u64::try_from(PATIENCE.as_nanos()).context("PATIENCE in nanoseconds")?;
        Ok(Self { histogram: Histogram::new_with_max(most, 3).context("make a histogram")? })
    }

    pub(super) fn add(&mut self, latency: Duration) {
        self.histogram.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn sample(&self, elapsed: Duration) -> Sample {
        let microseconds = |quantile| self.histogram.value_at_quantile(quantile) as f64 / 1000.0;
        Sample {
            operations: self.histogram.len(),
            lost: 0,
            seconds: elapsed.as_secs_f64(),
            p50_us: Some(microseconds(0.5)),
            p99_us: Some(microseconds(0.99)),
        }
    }
}
