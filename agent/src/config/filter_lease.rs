//! `filter_lease`.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What it may be: below, most packets would go by the kernel; above, others' rules would be heeded too late.
const BOUNDS: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(10);

/// How long a flow that others' rules have let through is not asked for again, as `1s` or `250ms`: from 50 milliseconds to 10 seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FilterLease(Duration);

impl FilterLease {
    /// In nanoseconds.
    pub fn nanoseconds(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Default for FilterLease {
    fn default() -> Self {
        Self(Duration::from_secs(1))
    }
}

impl TryFrom<String> for FilterLease {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let lease = humantime::parse_duration(&text).map_err(|error| format!("filter_lease: {error}"))?;
        if !BOUNDS.contains(&lease) {
            let [least, most] = [*BOUNDS.start(), *BOUNDS.end()].map(humantime::format_duration);
            return Err(format!("filter_lease is {text}; it may be from {least} to {most}"));
        }
        Ok(Self(lease))
    }
}

impl From<FilterLease> for String {
    fn from(FilterLease(lease): FilterLease) -> Self {
        humantime::format_duration(lease).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_a_duration_within_bounds() {
        let of = |text: &str| FilterLease::try_from(text.to_owned());
        assert_eq!(of("250ms").unwrap().nanoseconds(), 250_000_000);
        assert_eq!(of("1s"), Ok(FilterLease::default()));
        for (wrong, why) in [("", "empty"), ("1", "unit"), ("1h", "10s"), ("0s", "50ms"), ("a lot", "number")]
        {
            let said = of(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong:?}: {said}");
        }
    }
}
