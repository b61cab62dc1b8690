//! The `ipam` object: host-local's keys, checked and with their defaults.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::{
    error::Error,
    fault::Fault,
    json::Located,
    range::Range,
    range_set::{RangeSet, find_overlap},
    subnet::Subnet,
};
use crate::result::Route;

/// Where host-local keeps its networks.
const DEFAULT_DATA_DIR: &str = "/var/lib/cni/networks";

/// The most range sets: one interface has an address of each.
const MAX_SETS: usize = 1024;

/// What ADD, CHECK and STATUS need to know.
#[derive(Debug)]
pub(super) struct Config {
    /// The runtime's range sets, then the flat `subnet`, then `ranges`. Their order names `last_reserved_ip.N`.
    pub(super) sets: Vec<RangeSet>,
    pub(super) routes: Vec<Route>,
    pub(super) resolv_conf: Option<PathBuf>,
    pub(super) data_dir: PathBuf,
}

impl Config {
    /// Checks the `ipam` object and `runtimeConfig.ipRanges`.
    pub(super) fn parse(ipam: &Value, ip_ranges: Option<&Value>) -> Result<Self, Error> {
        let data_dir = data_dir(ipam)?;
        let mut sets = match ip_ranges.and_then(|value| Located::new(value, "runtimeConfig.ipRanges")) {
            Some(ranges) => range_sets(&ranges)?,
            None => Vec::new(),
        };
        let mut routes = Vec::new();
        let mut resolv_conf = None;
        if let Some(ipam) = Located::new(ipam, "ipam") {
            if ipam.text("subnet")?.is_some() {
                let set = RangeSet::new(vec![range(&ipam)?]).map_err(|fault| ipam.fault(fault))?;
                sets.push(set);
            }
            if let Some(ranges) = ipam.get("ranges") {
                sets.extend(range_sets(&ranges)?);
            }
            if let Some(array) = ipam.get("routes") {
                routes = array.elements()?.iter().map(route).collect::<Result<_, _>>()?;
            }
            resolv_conf = ipam.text("resolvConf")?.map(|(_, path)| PathBuf::from(path));
        }
        if sets.is_empty() {
            return Err(Error::NoRanges);
        }
        if sets.len() > MAX_SETS {
            let fault = Fault::TooMany(sets.len(), MAX_SETS);
            return Err(Error::InvalidConfig { key: "ipam.ranges".to_owned(), fault });
        }
        refuse_overlaps(&sets)?;
        Ok(Self { sets, routes, resolv_conf, data_dir })
    }
}

/// The directory of all networks; all that DEL and GC need to know.
pub(crate) fn data_dir(ipam: &Value) -> Result<PathBuf, Error> {
    let configured = match Located::new(ipam, "ipam") {
        Some(ipam) => ipam.text("dataDir")?,
        None => None,
    };
    Ok(PathBuf::from(configured.map_or(DEFAULT_DATA_DIR, |(_, path)| path)))
}

fn range_sets(sets: &Located<'_>) -> Result<Vec<RangeSet>, Error> {
    sets.elements()?.iter().map(range_set).collect()
}

fn range_set(set: &Located<'_>) -> Result<RangeSet, Error> {
    let ranges = set.elements()?.iter().map(range).collect::<Result<_, _>>()?;
    RangeSet::new(ranges).map_err(|fault| set.fault(fault))
}

/// A range object: `subnet`, and optionally `rangeStart`, `rangeEnd`, `gateway`.
fn range(object: &Located<'_>) -> Result<Range, Error> {
    let Some((located, text)) = object.text("subnet")? else {
        return Err(object.fault(Fault::NoSubnet));
    };
    let subnet = Subnet::parse(text).map_err(|fault| located.fault(fault))?;
    let (start, end) = (object.address("rangeStart")?, object.address("rangeEnd")?);
    Range::new(subnet, start, end, object.address("gateway")?).map_err(|fault| object.range_fault(fault))
}

fn route(object: &Located<'_>) -> Result<Route, Error> {
    Route::deserialize(object.value()).map_err(|error| object.fault(Fault::Route(error.to_string())))
}

fn refuse_overlaps(sets: &[RangeSet]) -> Result<(), Error> {
    let ranges = sets.iter().flat_map(|set| set.ranges().iter().map(move |range| (range, set)));
    match find_overlap(ranges) {
        Some(((_, one), (_, other))) => {
            let fault = Fault::Overlap(one.to_string(), other.to_string());
            Err(Error::InvalidConfig { key: "ipam.ranges".to_owned(), fault })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn refusal(ipam: Value) -> String {
        Config::parse(&ipam, None).unwrap_err().to_string()
    }

    #[test]
    fn range_sets_come_in_the_order_runtime_flat_ranges() {
        let ipam = json!({"subnet": "10.1.0.0/24", "ranges": [[{"subnet": "10.2.0.0/24"}]]});
        let runtime = json!([[{"subnet": "10.3.0.0/24", "rangeStart": "10.3.0.9"}]]);
        let config = Config::parse(&ipam, Some(&runtime)).unwrap();
        let sets: Vec<_> = config.sets.iter().map(ToString::to_string).collect();
        assert_eq!(sets, ["10.3.0.9-10.3.0.254", "10.1.0.1-10.1.0.254", "10.2.0.1-10.2.0.254"]);
        assert_eq!(config.data_dir, PathBuf::from(DEFAULT_DATA_DIR));
    }

    #[test]
    fn null_and_empty_texts_count_as_absent() {
        let ipam = json!({
            "subnet": "10.1.0.0/24", "gateway": "", "rangeStart": null, "ranges": null, "routes": null,
            "dataDir": "", "resolvConf": null,
        });
        let config = Config::parse(&ipam, Some(&Value::Null)).unwrap();
        assert_eq!(config.sets.len(), 1);
        assert_eq!((config.routes.len(), config.resolv_conf), (0, None));
        assert!(matches!(Config::parse(&Value::Null, None), Err(Error::NoRanges)));
    }

    #[test]
    fn a_refusal_names_the_key() {
        let bad_start = json!({"ranges": [[{"subnet": "10.1.0.0/24"}, {"subnet": "10.2.0.0/24", "rangeStart": "10.1.0.9"}]]});
        assert_eq!(refusal(bad_start), "ipam.ranges[0][1].rangeStart: 10.1.0.9 is not in 10.2.0.0/24");
        assert_eq!(refusal(json!({"subnet": 7})), "ipam.subnet: must be a string");
        assert_eq!(
            refusal(json!({"subnet": "10.1.0.0/24", "gateway": "x"})),
            "ipam.gateway: \"x\" is not an IP address"
        );
        assert_eq!(refusal(json!({"ranges": [{}]})), "ipam.ranges[0]: must be an array");
        assert_eq!(refusal(json!({"ranges": [[{}]]})), "ipam.ranges[0][0]: has no subnet");
        assert_eq!(refusal(json!({"ranges": [[]]})), "ipam.ranges[0]: is an empty range set");
        let overlap = json!({"ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "10.1.0.0/25"}]]});
        assert_eq!(refusal(overlap), "ipam.ranges: 10.1.0.1-10.1.0.254 and 10.1.0.1-10.1.0.126 overlap");
        assert!(
            refusal(json!({"subnet": "10.1.0.0/24", "routes": [{"dst": "x"}]}))
                .starts_with("ipam.routes[0]: ")
        );
    }
    /// Texts and other values that are nearly right.
    fn any_value() -> impl Strategy<Value = Value> {
        prop_oneof![
            "[0-9a-f:.]{0,20}(/[0-9]{1,3})?".prop_map(Value::from),
            prop::sample::select(vec![
                "10.0.0.0/24",
                "10.0.0.0/30",
                "10.0.0.1",
                "10.0.0.255",
                "::/0",
                "fd00::",
                "",
                "::"
            ])
            .prop_map(Value::from),
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            Just(json!([])),
            Just(json!([[]])),
        ]
    }

    fn any_range() -> impl Strategy<Value = Value> {
        let keys = prop::sample::select(vec![
            "subnet",
            "rangeStart",
            "rangeEnd",
            "gateway",
            "ranges",
            "routes",
            "dataDir",
        ]);
        prop::collection::hash_map(keys, any_value(), 0..5).prop_map(|keys| keys.into_iter().collect())
    }

    proptest! {
        #[test]
        fn no_configuration_panics_and_an_accepted_one_has_ranges(
            flat in any_range(),
            sets in prop::collection::vec(prop::collection::vec(any_range(), 0..3), 0..3),
        ) {
            if let Ok(config) = Config::parse(&flat, Some(&json!(sets))) {
                prop_assert!(!config.sets.is_empty());
                prop_assert!(config.sets.iter().all(|set| !set.ranges().is_empty()));
            }
        }
    }
}
