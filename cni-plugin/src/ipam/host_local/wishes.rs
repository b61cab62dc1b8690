//! Which range set gives which requested address.

use std::collections::HashSet;
use std::net::IpAddr;

use super::{error::Error, range::Range, range_set::RangeSet};

/// A requested address and the range it lies in; none for a range set that may choose.
pub(super) type Wish<'a> = Option<(IpAddr, &'a Range)>;

/// Gives each requested address to the range set that contains it. One entry for each set.
///
/// # Errors
/// An address that no set has, a second one in a set, or a gateway: a runtime that insists on an address must not be
/// given another one instead.
pub(super) fn assign<'a>(sets: &'a [RangeSet], requested: &[IpAddr]) -> Result<Vec<Wish<'a>>, Error> {
    let mut seen = HashSet::new();
    // The same address may come by several ways: as an argument and as a capability.
    let mut left: Vec<IpAddr> =
        requested.iter().map(IpAddr::to_canonical).filter(|address| seen.insert(*address)).collect();
    if left.len() > sets.len() {
        return Err(Error::Unsatisfiable(left));
    }
    let mut wishes = Vec::with_capacity(sets.len());
    for set in sets {
        let position = left.iter().position(|address| set.range_of(*address).is_some());
        let wish = position.map(|position| left.remove(position));
        wishes.push(wish.and_then(|address| Some((address, set.range_of(address)?))));
    }
    if !left.is_empty() {
        return Err(Error::Unsatisfiable(left));
    }
    match wishes.iter().flatten().find(|(address, range)| !range.allocatable(*address)) {
        Some((gateway, _)) => Err(Error::AddressIsGateway(*gateway)),
        None => Ok(wishes),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::config::Config, *};

    fn assigned(requested: &[&str]) -> Result<Vec<String>, Error> {
        let ipam = json!({"ranges": [[{"subnet": "10.1.0.0/24"}, {"subnet": "10.2.0.0/24"}], [{"subnet": "fd00::/64"}]]});
        let config = Config::parse(&ipam, None).unwrap();
        let requested: Vec<IpAddr> = requested.iter().map(|ip| ip.parse().unwrap()).collect();
        let wishes = assign(&config.sets, &requested)?;
        let text = |wish: &Wish<'_>| {
            wish.map_or_else(String::new, |(address, range)| format!("{address} of {range}"))
        };
        Ok(wishes.iter().map(text).collect())
    }

    #[test]
    fn each_address_goes_to_the_set_that_contains_it() {
        assert_eq!(assigned(&[]).unwrap(), ["", ""]);
        let both = assigned(&["fd00::7", "10.2.0.9"]).unwrap();
        assert_eq!(both, ["10.2.0.9 of 10.2.0.1-10.2.0.254", "fd00::7 of fd00::1-fd00::ffff:ffff:ffff:ffff"]);
    }

    #[test]
    fn an_address_may_be_asked_for_twice_and_in_ipv6_spelling() {
        let once = assigned(&["10.1.0.9", "::ffff:10.1.0.9"]).unwrap();
        assert_eq!(once, ["10.1.0.9 of 10.1.0.1-10.1.0.254", ""]);
    }

    #[test]
    fn what_cannot_be_granted_is_refused() {
        assert!(matches!(assigned(&["10.9.0.1"]), Err(Error::Unsatisfiable(_))));
        assert!(matches!(assigned(&["10.1.0.2", "10.2.0.2"]), Err(Error::Unsatisfiable(_))));
        assert!(matches!(assigned(&["10.1.0.1"]), Err(Error::AddressIsGateway(_))));
    }
}
