//! One network, two plugins: either may take over from the other at any time.

use proptest::prelude::*;
use serde_json::json;

use crate::{
    network::{Network, text},
    reference,
};

#[test]
fn the_reference_plugin_takes_over_under_our_allocations() {
    let network = Network::new(json!({"ranges": [[{"subnet": "10.0.0.0/29"}], [{"subnet": "fd00::/125"}]]}));
    network.add("c1", "eth0").unwrap();
    network.add("c1", "net1").unwrap();

    assert_eq!(reference::run(&network, "CHECK", "c1", "eth0", None), Ok(vec![]));
    assert!(reference::run(&network, "ADD", "c1", "eth0", None).unwrap_err().contains("duplicate"));
    let next = reference::run(&network, "ADD", "c2", "eth0", None).unwrap();
    assert_eq!(next, ["10.0.0.4/29 via 10.0.0.1", "fd00::4/125 via fd00::1"]);
    reference::run(&network, "DEL", "c1", "eth0", None).unwrap();
    let holders: Vec<_> = network.held().into_values().collect();
    assert_eq!(holders, ["c1\r\nnet1", "c2\r\neth0", "c1\r\nnet1", "c2\r\neth0"]);
}

#[test]
fn we_take_over_under_the_reference_plugins_allocations() {
    let network = Network::new(json!({"ranges": [[{"subnet": "10.0.0.0/29"}], [{"subnet": "fd00::/125"}]]}));
    reference::run(&network, "ADD", "c1", "eth0", None).unwrap();
    reference::run(&network, "ADD", "c1", "net1", None).unwrap();

    network.check("c1", "eth0", &["10.0.0.2".parse().unwrap(), "fd00::2".parse().unwrap()]).unwrap();
    assert!(network.add("c1", "eth0").is_err());
    let next = network.add("c2", "eth0").unwrap();
    assert_eq!(text(&next), ["10.0.0.4/29 via 10.0.0.1", "fd00::4/125 via fd00::1"]);
    network.gc(&[("c1", "net1"), ("c2", "eth0")]).unwrap();
    let holders: Vec<_> = network.held().into_values().collect();
    assert_eq!(holders, ["c1\r\nnet1", "c2\r\neth0", "c1\r\nnet1", "c2\r\neth0"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 40, ..ProptestConfig::default() })]

    /// Each verb goes to one of the two by chance; beside it runs a network that is the reference plugin's alone.
    #[test]
    fn who_does_what_makes_no_difference(steps in prop::collection::vec((any::<bool>(), any::<bool>(), 0usize..8), 1..24)) {
        let ipam = json!({"ranges": [[{"subnet": "10.0.0.0/29"}], [{"subnet": "fd00::/120"}]]});
        let (shared, theirs) = (Network::new(ipam.clone()), Network::new(ipam));
        for (by_us, add, container) in steps {
            let container = format!("c{container}");
            let verb = if add { "ADD" } else { "DEL" };
            let expected = reference::run(&theirs, verb, &container, "eth0", None);
            let answer = match (by_us, add) {
                (false, _) => reference::run(&shared, verb, &container, "eth0", None),
                (true, true) => shared.add(&container, "eth0").map(|a| text(&a)).map_err(|e| e.to_string()),
                (true, false) => shared.del(&container, "eth0").map(|()| vec![]).map_err(|e| e.to_string()),
            };
            prop_assert_eq!(answer.ok(), expected.ok());
            prop_assert_eq!(shared.files(), theirs.files());
        }
    }
}
