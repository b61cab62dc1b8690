//! What an operator says of an uplink, and what can be handed out of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Quantity, Speed};

/// A share in parts of a million, 1 unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Factor(u32);

/// What a factor of 1 is.
const ONE: u32 = 1_000_000;

/// The largest factor: to promise more than a hundred times what there is, is a mistake.
const MAX_FACTOR: f64 = 100.0;

impl Default for Factor {
    fn default() -> Self {
        Self(ONE)
    }
}

impl TryFrom<f64> for Factor {
    type Error = String;

    fn try_from(factor: f64) -> Result<Self, String> {
        if factor > 0.0 && factor <= MAX_FACTOR {
            Ok(Self((factor * f64::from(ONE)).round() as u32))
        } else {
            Err(format!("factor {factor} is not above 0 and at most {MAX_FACTOR}"))
        }
    }
}

impl From<Factor> for f64 {
    fn from(Factor(millionths): Factor) -> Self {
        Self::from(millionths) / Self::from(ONE)
    }
}

impl Factor {
    fn of(self, value: u64) -> u64 {
        u64::try_from(u128::from(value) * u128::from(self.0) / u128::from(ONE)).unwrap_or(u64::MAX)
    }
}

/// Which of an uplink's programs run in the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum XdpMode {
    /// Where the driver can.
    #[default]
    Auto,
    /// None.
    Off,
    /// All that can, and the driver must be able to.
    Native,
}

/// `[uplinks.NAME]` in the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct UplinkOptions {
    /// What it sends, bits a second.
    #[cfg_attr(test, schemars(with = "String", extend("form" = "quantity", "otherwise" = "the link's speed")))]
    pub egress: Option<Quantity>,
    /// What it receives, bits a second.
    #[cfg_attr(test, schemars(with = "String", extend("form" = "quantity", "otherwise" = "the link's speed")))]
    pub ingress: Option<Quantity>,
    /// How much of that may be handed out.
    #[cfg_attr(test, schemars(with = "f64", extend("form" = "number above 0, at most 100")))]
    pub factor: Factor,
    /// What is kept for the node itself, of each direction.
    #[cfg_attr(test, schemars(with = "String", extend("form" = "quantity")))]
    pub reserve: Quantity,
    /// The networks that use it. Networks that no uplink names use the first one that names none.
    pub networks: Vec<String>,
    /// Which of its programs run in the driver.
    #[cfg_attr(test, schemars(extend("see" = "dataplane/uplinks.md#xdp")))]
    pub xdp: XdpMode,
    /// Whether the uplink's queue is shared out, so that claims have their rate also while it is full.
    #[cfg_attr(test, schemars(extend("see" = "dataplane/limits.md#guarantee")))]
    pub guarantee: bool,
}

/// How much of a link's own speed is shared out, in hundredths: what waits has to wait in the agent's queue, and not in the hardware's.
const SHARED: u64 = 98;

/// Why it is not known what an uplink has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The link says nothing that can be believed.
    Speed,
    /// There is no such link.
    NoLink,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Speed => "its speed is unknown; set egress and ingress in its section of the configuration",
            Self::NoLink => "there is no such link",
        })
    }
}

/// What can be handed out, in bits a second: speed × factor − reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Of what it sends.
    pub egress: u64,
    /// Of what it receives.
    pub ingress: u64,
}

impl UplinkOptions {
    /// What can be handed out of a link of this speed.
    ///
    /// # Errors
    /// [`Unknown`]: nothing can be.
    pub fn totals(&self, speed: Speed) -> Result<Totals, Unknown> {
        let of_link = match speed {
            Speed::Known(speed) => Some(Quantity(speed)),
            Speed::Unknown => None,
            Speed::NoLink => return Err(Unknown::NoLink),
        };
        let total = |own: Option<Quantity>| {
            let Quantity(speed) = own.or(of_link).ok_or(Unknown::Speed)?;
            Ok(self.factor.of(speed).saturating_sub(self.reserve.0))
        };
        Ok(Totals { egress: total(self.egress)?, ingress: total(self.ingress)? })
    }

    /// What a link of this speed sends at most while it is shared out, bits a second: the operator's figure, else a little less than its
    /// speed.
    ///
    /// # Errors
    /// [`Unknown`]: it cannot be shared out.
    pub fn shared(&self, speed: Speed) -> Result<u64, Unknown> {
        match (self.egress, speed) {
            (_, Speed::NoLink) => Err(Unknown::NoLink),
            (Some(Quantity(own)), _) => Ok(own),
            (None, Speed::Known(speed)) => Ok(speed / 100 * SHARED),
            (None, Speed::Unknown) => Err(Unknown::Speed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> UplinkOptions {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_total_is_the_speed_times_the_factor_without_the_reserve() {
        let uplink = options("factor = 0.95\nreserve = '500M'");
        let totals = uplink.totals(Speed::Known(10_000_000_000)).unwrap();
        assert_eq!(totals, Totals { egress: 9_000_000_000, ingress: 9_000_000_000 });
    }

    #[test]
    fn the_operators_word_wins_and_each_direction_has_its_own() {
        let uplink = options("egress = '100M'");
        let totals = uplink.totals(Speed::Known(1_000_000_000)).unwrap();
        assert_eq!(totals, Totals { egress: 100_000_000, ingress: 1_000_000_000 });
        assert_eq!(uplink.totals(Speed::Unknown), Err(Unknown::Speed));
        assert_eq!(uplink.totals(Speed::NoLink), Err(Unknown::NoLink));
    }

    #[test]
    fn what_is_shared_out_is_the_operators_figure_or_a_little_less_than_the_speed() {
        let gigabit = Speed::Known(1_000_000_000);
        assert_eq!(options("egress = '500M'").shared(gigabit), Ok(500_000_000));
        assert_eq!(options("factor = 2.0").shared(gigabit), Ok(980_000_000));
        assert_eq!(options("").shared(Speed::Unknown), Err(Unknown::Speed));
    }

    #[test]
    fn a_reserve_above_the_speed_leaves_nothing() {
        let totals = options("reserve = '2G'").totals(Speed::Known(1_000_000_000)).unwrap();
        assert_eq!(totals, Totals { egress: 0, ingress: 0 });
    }

    #[test]
    fn senseless_factors_and_unknown_keys_are_refused() {
        for text in ["factor = 0.0", "factor = -1.0", "factor = nan", "factor = 101.0", "egres = '1G'"] {
            assert!(toml::from_str::<UplinkOptions>(text).is_err(), "{text}");
        }
    }
}
