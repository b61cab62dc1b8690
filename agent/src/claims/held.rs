//! What a pod's claims come to on an uplink, and what limits they make of those that were asked for.

use std::fmt::Write as _;

use shunt_agent_api::{Bandwidth, Rate};

use super::Claim;
use crate::capacity::{Demand, Quantity};

/// The claims of one pod that have something of one uplink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Their UIDs, in order.
    pub claims: Vec<String>,
    /// What they have together, bits a second.
    pub demand: Demand,
    /// Their names, for events.
    pub names: String,
}

impl Held {
    /// What these claims have of an uplink; none if they have nothing of it.
    pub fn of<'a>(claims: impl Iterator<Item = &'a Claim>, uplink: &str) -> Option<Self> {
        let mut held = Self::default();
        for claim in claims {
            let Some(Demand { egress, ingress }) = claim.of_uplink(uplink) else { continue };
            if !held.names.is_empty() {
                held.names.push_str(", ");
            }
            // A string takes everything.
            let _taken = write!(held.names, "{claim}");
            held.claims.push(claim.uid.clone());
            held.demand.egress = held.demand.egress.saturating_add(egress);
            held.demand.ingress = held.demand.ingress.saturating_add(ingress);
        }
        (!held.claims.is_empty()).then_some(held)
    }

    /// The limits of an attachment for which these were asked: each way the lower rate. Subnets stay as they are: they say what of the
    /// traffic counts.
    pub fn limits(&self, asked: &Bandwidth) -> Bandwidth {
        Bandwidth {
            egress: Some(lower(asked.egress, self.demand.egress)),
            ingress: Some(lower(asked.ingress, self.demand.ingress)),
            ..asked.clone()
        }
    }

    /// Whether another rate than the claims' was asked for, either way.
    pub fn differs_from(&self, asked: &Bandwidth) -> bool {
        let ways = [(asked.egress, self.demand.egress), (asked.ingress, self.demand.ingress)];
        ways.iter().any(|(asked, claimed)| asked.is_some_and(|asked| asked.rate != *claimed))
    }

    /// What holds, in one line for an event.
    pub fn described(&self, asked: &Bandwidth) -> String {
        let ways =
            [("egress", asked.egress, self.demand.egress), ("ingress", asked.ingress, self.demand.ingress)];
        let ways = ways.map(|(way, asked, claimed)| match asked {
            Some(asked) if asked.rate < claimed => format!(
                "{way} {} as asked for, below the claim's {}",
                Quantity(asked.rate),
                Quantity(claimed)
            ),
            Some(asked) if asked.rate > claimed => {
                format!("{way} {}, below the {} that were asked for", Quantity(claimed), Quantity(asked.rate))
            }
            _ => format!("{way} {}", Quantity(claimed)),
        });
        format!("claim {}, in bit/s: {}", self.names, ways.join("; "))
    }
}

/// The lower of a limit that was asked for and a claim's rate, which has the longest burst: what a bucket takes of it is bounded.
fn lower(asked: Option<Rate>, claimed: u64) -> Rate {
    asked.filter(|asked| asked.rate <= claimed).unwrap_or(Rate { rate: claimed, burst: claimed })
}

#[cfg(test)]
mod tests {
    use super::super::{Consumer, Share};
    use super::*;

    fn claim(uid: &str, shares: &[(&str, u64, u64)]) -> Claim {
        let share = |(uplink, egress, ingress): &(&str, u64, u64)| Share {
            uplink: (*uplink).to_owned(),
            egress: *egress,
            ingress: *ingress,
            ..Share::default()
        };
        Claim {
            uid: uid.to_owned(),
            namespace: "team".to_owned(),
            name: format!("claim-{uid}"),
            pod: Consumer::default(),
            shares: shares.iter().map(share).collect(),
        }
    }

    const M: u64 = 1_000_000;

    #[test]
    fn claims_of_one_uplink_are_summed_and_others_are_left_out() {
        let claims = [
            claim("1", &[("eth1", 10 * M, 20 * M), ("eth2", M, M)]),
            claim("2", &[("eth1", 5 * M, u64::MAX)]),
            claim("3", &[("eth2", M, M)]),
        ];
        let held = Held::of(claims.iter(), "eth1").unwrap();
        assert_eq!(held.claims, ["1", "2"]);
        assert_eq!(held.demand, Demand { egress: 15 * M, ingress: u64::MAX });
        assert_eq!(held.names, "team/claim-1, team/claim-2");
        assert_eq!(Held::of(claims.iter(), "eth3"), None);
    }

    #[test]
    fn the_lower_rate_holds_each_way_and_it_is_said_which() {
        let rate = |rate| Some(Rate { rate, burst: 80_000 });
        let held = Held::of([claim("1", &[("eth1", 10 * M, 20 * M)])].iter(), "eth1").unwrap();
        let asked = Bandwidth { egress: rate(4 * M), ingress: rate(50 * M), ..Bandwidth::default() };
        let limits = held.limits(&asked);
        assert_eq!(limits.egress, rate(4 * M));
        assert_eq!(limits.ingress, Some(Rate { rate: 20 * M, burst: 20 * M }));
        assert_eq!(
            held.described(&asked),
            "claim team/claim-1, in bit/s: egress 4M as asked for, below the claim's 10M; ingress 20M, below the \
             50M that were asked for"
        );
        let unlimited = Bandwidth::default();
        assert!(held.differs_from(&asked) && !held.differs_from(&unlimited));
        assert_eq!(held.limits(&unlimited).egress.unwrap().rate, 10 * M);
        assert_eq!(held.described(&unlimited), "claim team/claim-1, in bit/s: egress 10M; ingress 20M");
    }
}
