//! The ledger against a model of it: any interleaving of attach, detach, collect and restart.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const SLOTS: SlotsReport = SlotsReport { total: 9, free: 9 };

fn key(network: &str, number: u8) -> AttachmentKey {
    AttachmentKey { network: network.into(), container: format!("c{number}"), ifname: "eth0".into() }
}

fn ledger(text: &str) -> Ledger {
    Ledger::new(&toml::from_str(text).unwrap())
}

fn both(rate: u64) -> Demand {
    Demand { egress: rate, ingress: rate }
}

#[test]
fn what_exceeds_the_free_capacity_is_refused_with_the_figures() {
    let mut books = ledger("[eth1]\negress = '10G'\ningress = '10G'\nreserve = '1G'");
    books.allocate(&key("net", 1), both(6_000_000_000));
    let shortage = books
        .admits(&key("net", 2), Demand { egress: 4_000_000_000, ingress: 0 }, Demand::default())
        .unwrap_err();
    let text = "uplink eth1 has 3G of 9G bit/s left for egress, and 4G bit/s are asked for";
    assert_eq!(shortage.to_string(), text);
    books.admits(&key("net", 2), both(3_000_000_000), Demand::default()).unwrap();
    // What it has already does not stand in its own way.
    books.admits(&key("net", 1), both(9_000_000_000), Demand::default()).unwrap();
}

#[test]
fn nothing_is_promised_of_an_uplink_that_says_nothing() {
    let mut books = ledger("[eth1]");
    let shortage = books.admits(&key("net", 1), both(1), Demand::default()).unwrap_err();
    assert!(shortage.to_string().contains("set egress and ingress"), "{shortage}");
    books.admits(&key("net", 1), Demand::default(), Demand::default()).unwrap();
    assert!(books.set_speed("eth1", Speed::Known(100)) && !books.set_speed("eth1", Speed::Known(100)));
    books.admits(&key("net", 1), both(100), Demand::default()).unwrap();
    assert!(books.unknown().is_empty());
}

#[test]
fn an_uplink_that_disappears_keeps_its_books() {
    let mut books = ledger("[eth1]\negress = '10G'\ningress = '10G'");
    books.allocate(&key("net", 1), both(6));
    books.set_speed("eth1", Speed::NoLink);
    let report = books.report(SLOTS).uplinks.remove(0);
    assert_eq!((report.egress.total, report.egress.allocated, report.egress.free), (0, 6, 0));
    assert_eq!(report.unknown.as_deref(), Some("there is no such link"));
    assert!(books.exhausted().unwrap().contains("egress"));
    books.set_speed("eth1", Speed::Unknown);
    assert_eq!(books.report(SLOTS).uplinks[0].egress.free, 9_999_999_994);
}

#[test]
fn a_network_is_counted_once_on_the_uplink_that_names_it() {
    let mut books = ledger(
        "[a]\negress = 10\ningress = 10\nnetworks = ['storage']\n[b]\negress = 20\ningress = 20\n[c]\negress = 30\ningress = 30",
    );
    books.allocate(&key("storage", 1), both(7));
    books.allocate(&key("net", 1), both(5));
    let free: Vec<_> = books.report(SLOTS).uplinks.iter().map(|uplink| uplink.egress.free).collect();
    assert_eq!(free, [3, 15, 30]);
}

#[test]
fn without_an_uplink_nothing_is_counted_and_nothing_refused() {
    let mut books = ledger("");
    books.admits(&key("net", 1), both(u64::MAX), Demand::default()).unwrap();
    books.allocate(&key("net", 1), both(u64::MAX));
    assert_eq!(books.report(SLOTS).uplinks, []);
    assert_eq!(books.exhausted(), None);
}

#[derive(Clone, Debug)]
enum Step {
    Add(u8, u64, u64),
    Remove(u8),
    Collect(BTreeSet<u8>),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let rate = || prop_oneof![4 => 0u64..400, 1 => any::<u64>()];
    let step = prop_oneof![
        6 => (0u8..12, rate(), rate()).prop_map(|(n, egress, ingress)| Step::Add(n, egress, ingress)),
        3 => (0u8..12).prop_map(Step::Remove),
        1 => prop::collection::btree_set(0u8..12, 0..12).prop_map(Step::Collect),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn no_interleaving_overdraws_the_account_or_loses_a_bit(steps in steps()) {
        const FILE: &str = "[eth1]\negress = 1000\ningress = 900\nreserve = 100";
        let mut books = ledger(FILE);
        let mut model: BTreeMap<u8, Demand> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Add(number, egress, ingress) => {
                    let demand = Demand { egress, ingress };
                    let key = key("net", number);
                    let others = model.iter().filter(|(other, _)| **other != number);
                    let (out, into) = others.fold((0u128, 0u128), |(out, into), (_, demand)| {
                        (out + u128::from(demand.egress), into + u128::from(demand.ingress))
                    });
                    let fits = out + u128::from(egress) <= 900 && into + u128::from(ingress) <= 800;
                    prop_assert_eq!(books.admits(&key, demand, Demand::default()).is_ok(), fits);
                    if fits {
                        books.allocate(&key, demand);
                        model.insert(number, demand);
                    }
                }
                Step::Remove(number) => {
                    books.release(&key("net", number));
                    model.remove(&number);
                }
                Step::Collect(valid) => {
                    for number in model.keys().filter(|number| !valid.contains(number)) {
                        books.release(&key("net", *number));
                    }
                    model.retain(|number, _| valid.contains(number));
                }
                Step::Restart => {
                    let before = books.report(SLOTS);
                    books = ledger(FILE);
                    for (number, demand) in &model {
                        books.allocate(&key("net", *number), *demand);
                    }
                    prop_assert_eq!(&books.report(SLOTS), &before);
                }
            }
            let report = books.report(SLOTS).uplinks.remove(0);
            let sum = |of: fn(&Demand) -> u64| model.values().map(of).sum::<u64>();
            for (pool, total, allocated) in [
                (report.egress, 900, sum(|demand| demand.egress)),
                (report.ingress, 800, sum(|demand| demand.ingress)),
            ] {
                prop_assert_eq!((pool.total, pool.allocated), (total, allocated));
                prop_assert_eq!(pool.free + pool.allocated, total);
            }
        }
    }

    #[test]
    fn whatever_is_written_down_unasked_the_free_part_stays_within_the_total(
        rates in prop::collection::vec(any::<u64>(), 0..8), total: u64,
    ) {
        let mut books = ledger("[eth1]");
        books.set_speed("eth1", Speed::Known(total));
        for (number, rate) in rates.into_iter().enumerate() {
            books.allocate(&key("net", number as u8), both(rate));
            let pool = books.report(SLOTS).uplinks.remove(0).egress;
            prop_assert!(pool.free <= total && (pool.free == 0 || pool.free + pool.allocated == total));
        }
    }
}

#[test]
fn what_is_promised_to_others_is_not_free() {
    let mut books = ledger("[eth1]");
    books.set_speed("eth1", Speed::Known(1_000));
    let promised = both(600);
    books.admits(&key("net", 1), both(400), promised).unwrap();
    let shortage = books.admits(&key("net", 1), both(401), promised).unwrap_err();
    assert!(shortage.to_string().contains("400 of 1k bit/s left"), "{shortage}");
}
