//! What a container may send and receive: the bandwidth plugin's keys, static or of the runtime.

use shunt_agent_api::{Bandwidth as Limits, Rate};

use super::{Bandwidth, ConfigError};

/// Names of a pair's keys.
type Keys = [&'static str; 2];

const INGRESS: Keys = ["ingressRate", "ingressBurst"];
const EGRESS: Keys = ["egressRate", "egressBurst"];

/// Decides. As with the reference plugin, static keys beat the runtime's, all of them at once.
///
/// # Errors
/// [`ConfigError::Invalid`] for one of a pair without the other. A runtime may send a burst without a rate: several do,
/// always, and mean no limit.
pub(super) fn of(own: Bandwidth, runtime: Option<Bandwidth>) -> Result<Limits, ConfigError> {
    if own == Bandwidth::default() {
        let given = runtime.unwrap_or_default();
        return Ok(Limits {
            ingress: pair(INGRESS, given.ingress_rate, given.ingress_burst, false)?,
            egress: pair(EGRESS, given.egress_rate, given.egress_burst, false)?,
            ..Limits::default()
        });
    }
    Ok(Limits {
        ingress: pair(INGRESS, own.ingress_rate, own.ingress_burst, true)?,
        egress: pair(EGRESS, own.egress_rate, own.egress_burst, true)?,
        ..Limits::default()
    })
}

fn pair(keys: Keys, rate: u64, burst: u64, both: bool) -> Result<Option<Rate>, ConfigError> {
    let [rate_key, burst_key] = keys;
    let invalid = |key, other| {
        let why = format!("must be set, and not 0, where there is a {other}");
        Err(ConfigError::Invalid { key, why })
    };
    match (rate, burst) {
        (0, 0) => Ok(None),
        (0, _) if both => invalid(rate_key, burst_key),
        (0, _) => Ok(None),
        (_, 0) => invalid(burst_key, rate_key),
        (rate, burst) => Ok(Some(Rate { rate, burst })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITED: Bandwidth =
        Bandwidth { ingress_rate: 8, ingress_burst: 9, egress_rate: 10, egress_burst: 11 };

    #[test]
    fn static_keys_beat_the_runtimes() {
        let own = Bandwidth { egress_rate: 1, egress_burst: 2, ..Bandwidth::default() };
        let limits = of(own, Some(LIMITED)).unwrap();
        assert_eq!((limits.ingress, limits.egress), (None, Some(Rate { rate: 1, burst: 2 })));
    }

    #[test]
    fn the_runtimes_limits_count_where_there_are_no_static_ones() {
        let limits = of(Bandwidth::default(), Some(LIMITED)).unwrap();
        assert_eq!(limits.ingress, Some(Rate { rate: 8, burst: 9 }));
        assert_eq!(limits.egress, Some(Rate { rate: 10, burst: 11 }));
    }

    #[test]
    fn one_of_a_pair_is_refused_by_the_name_of_the_other() {
        let cases = [
            (Bandwidth { ingress_burst: 0, ..LIMITED }, "ingressBurst"),
            (Bandwidth { ingress_rate: 0, ..LIMITED }, "ingressRate"),
            (Bandwidth { egress_burst: 0, ..LIMITED }, "egressBurst"),
            (Bandwidth { egress_rate: 0, ..LIMITED }, "egressRate"),
        ];
        for (own, named) in cases {
            assert!(
                matches!(of(own, None), Err(ConfigError::Invalid { key, .. }) if key == named),
                "{own:?}"
            );
        }
        let runtime = Bandwidth { egress_burst: 0, ..LIMITED };
        assert!(of(Bandwidth::default(), Some(runtime)).is_err());
    }

    #[test]
    fn a_runtimes_burst_without_a_rate_means_no_limit() {
        let absurd =
            Bandwidth { ingress_burst: 4_294_967_295, egress_burst: 34_359_738_359, ..Bandwidth::default() };
        assert_eq!(of(Bandwidth::default(), Some(absurd)).unwrap(), Limits::default());
    }
}
