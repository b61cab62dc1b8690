//! Rates in few characters.

/// A rate with three digits and a decimal unit: `0`, `0.5`, `999`, `12.3M`.
pub(super) fn scaled(rate: f64) -> String {
    let mut value = rate.max(0.0);
    let mut units = ["k", "M", "G", "T", "P"].into_iter();
    let mut unit = "";
    while value >= 999.5 {
        let Some(larger) = units.next() else { break };
        (value, unit) = (value / 1000.0, larger);
    }
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    // A whole number has no fraction.
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

/// The same where it is known.
pub(super) fn known(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), scaled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_three_digits_and_a_unit() {
        let cases = [
            (0.0, "0"),
            (0.5, "0.5"),
            (12.34, "12.3"),
            (100.0, "100"),
            (999.4, "999"),
            (999.6, "1k"),
            (12_345_678.0, "12.3M"),
            (20e9, "20G"),
            (9.99e18, "9990P"),
        ];
        for (rate, text) in cases {
            assert_eq!(scaled(rate), text);
        }
        assert_eq!(known(None), "-");
    }
}
