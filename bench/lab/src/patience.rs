use std::time::Duration;

/// How long to wait for what usually takes a part of `usual`.
///
/// On a processor that is emulated everything takes longer. Whoever runs tests there says in `SHUNT_PATIENCE` how many
/// times longer they shall wait, so that slowness is told from failure in one place.
pub fn patience(usual: Duration) -> Duration {
    longer(usual, std::env::var("SHUNT_PATIENCE").ok().as_deref())
}

/// Whether the processor is said to be an emulated one.
pub fn is_emulated() -> bool {
    std::env::var_os("SHUNT_PATIENCE").is_some()
}

fn longer(usual: Duration, times: Option<&str>) -> Duration {
    usual * times.and_then(|times| times.parse().ok()).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_multiplied_and_never_shortened() {
        let usual = Duration::from_secs(3);
        for (times, expected) in [(None, 3), (Some("5"), 15), (Some("0"), 3), (Some("often"), 3)] {
            assert_eq!(longer(usual, times), Duration::from_secs(expected), "{times:?}");
        }
    }
}
