//! What a container may send and receive: the bandwidth plugin's keys, static or of the runtime.
//!
//! Subnets are the other ends': of what comes to the container by its source, of what goes from it by its destination.

use shunt_agent_api::{Bandwidth as Limits, Rate};
use shunt_netlink::prefix;

use super::error::ConfigError;
use super::network::Bandwidth;

/// Names of a pair's keys.
type Keys = [&'static str; 2];

const INGRESS: Keys = ["ingressRate", "ingressBurst"];
const EGRESS: Keys = ["egressRate", "egressBurst"];

/// From here on a runtime's burst means none in particular: several always send the largest that they know, also without a rate.
const ANY_BURST: u64 = i32::MAX as u64;

/// Decides. As with the reference plugin, static rates beat the runtime's, all of them at once; so do static subnets, which an
/// operator may name for rates of the runtime.
///
/// # Errors
/// [`ConfigError::Invalid`] for one of a pair without the other, for subnets to limit together with some not to, and for
/// what is no subnet. A runtime's largest burst without a rate is no limit.
pub(super) fn of(own: Bandwidth, runtime: Option<Bandwidth>) -> Result<Limits, ConfigError> {
    let given = runtime.unwrap_or_default();
    let names_subnets = own.shaped_subnets.len() + own.unshaped_subnets.len() > 0;
    let [shaped, unshaped] = if names_subnets {
        [own.shaped_subnets.clone(), own.unshaped_subnets.clone()]
    } else {
        [given.shaped_subnets.clone(), given.unshaped_subnets.clone()]
    };
    let has_rates = own.ingress_rate | own.ingress_burst | own.egress_rate | own.egress_burst != 0;
    let rates = if has_rates { own } else { given };
    let limits = Limits {
        ingress: pair(INGRESS, rates.ingress_rate, rates.ingress_burst, has_rates)?,
        egress: pair(EGRESS, rates.egress_rate, rates.egress_burst, has_rates)?,
        shaped: subnets("shapedSubnets", shaped)?,
        unshaped: subnets("unshapedSubnets", unshaped)?,
    };
    if !limits.shaped.is_empty() && !limits.unshaped.is_empty() {
        let why = "cannot be set together with shapedSubnets".to_owned();
        return Err(ConfigError::Invalid { key: "unshapedSubnets", why });
    }
    // Without a rate there is nothing that a subnet could be excepted from.
    if limits.ingress.is_none() && limits.egress.is_none() {
        return Ok(Limits::default());
    }
    Ok(limits)
}

fn subnets(key: &'static str, subnets: Vec<String>) -> Result<Vec<String>, ConfigError> {
    match subnets.iter().find(|subnet| prefix::parse(subnet).is_err()) {
        Some(wrong) => {
            Err(ConfigError::Invalid { key, why: format!("`{wrong}` is no subnet, as 10.1.0.0/16 is") })
        }
        None => Ok(subnets),
    }
}

fn pair(keys: Keys, rate: u64, burst: u64, both: bool) -> Result<Option<Rate>, ConfigError> {
    let [rate_key, burst_key] = keys;
    let invalid = |key, other| {
        let why = format!("must be set, and not 0, where there is a {other}");
        Err(ConfigError::Invalid { key, why })
    };
    match (rate, burst) {
        (0, 0) => Ok(None),
        (0, burst) if !both && burst >= ANY_BURST => Ok(None),
        (0, _) => invalid(rate_key, burst_key),
        (_, 0) => invalid(burst_key, rate_key),
        (rate, burst) => Ok(Some(Rate { rate, burst })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITED: Bandwidth = Bandwidth {
        ingress_rate: 8,
        ingress_burst: 9,
        egress_rate: 10,
        egress_burst: 11,
        shaped_subnets: Vec::new(),
        unshaped_subnets: Vec::new(),
    };

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
                matches!(of(own.clone(), None), Err(ConfigError::Invalid { key, .. }) if key == named),
                "{own:?}"
            );
        }
        for runtime in [Bandwidth { egress_burst: 0, ..LIMITED }, Bandwidth { egress_rate: 0, ..LIMITED }] {
            assert!(of(Bandwidth::default(), Some(runtime.clone())).is_err(), "{runtime:?}");
        }
    }

    #[test]
    fn a_runtimes_largest_burst_without_a_rate_means_no_limit() {
        let absurd =
            Bandwidth { ingress_burst: 4_294_967_295, egress_burst: 34_359_738_359, ..Bandwidth::default() };
        assert_eq!(of(Bandwidth::default(), Some(absurd)).unwrap(), Limits::default());
    }

    #[test]
    fn subnets_are_taken_as_they_are_and_both_kinds_at_once_refused() {
        let named = |shaped: &[&str], unshaped: &[&str]| Bandwidth {
            shaped_subnets: shaped.iter().map(ToString::to_string).collect(),
            unshaped_subnets: unshaped.iter().map(ToString::to_string).collect(),
            ..LIMITED
        };
        let limits = of(named(&["10.0.0.0/8", "fd00::/8"], &[]), None).unwrap();
        assert_eq!(limits.shaped, ["10.0.0.0/8", "fd00::/8"]);
        assert_eq!(
            of(Bandwidth::default(), Some(named(&[], &["10.0.0.1/32"]))).unwrap().unshaped,
            ["10.0.0.1/32"]
        );
        for (wrong, named) in [
            (named(&["10.0.0.0/8"], &["fd00::/8"]), "unshapedSubnets"),
            (named(&["10.0.0.0/33"], &[]), "shapedSubnets"),
            (named(&[], &["everything"]), "unshapedSubnets"),
        ] {
            assert!(
                matches!(of(wrong, None), Err(ConfigError::Invalid { key, .. }) if key == named),
                "{named}"
            );
        }
        let unlimited = Bandwidth { shaped_subnets: vec!["10.0.0.0/8".into()], ..Bandwidth::default() };
        assert_eq!(of(unlimited, None).unwrap(), Limits::default());
    }
}
