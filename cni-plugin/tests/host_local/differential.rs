//! The same sequence of verbs into the reference plugin and into ours: the same answers, the same files.
//!
//! Left out is where ours differs on purpose. host-local's failed ADD with requested addresses turns the round robin, and
//! takes away what the attachment held before; its DEL with several range sets also takes old records that may be those of
//! the container's other interfaces.

use std::{fs, net::IpAddr, os::unix::fs::PermissionsExt};

use proptest::prelude::*;
use serde_json::{Value, json};
use shunt::host_local::{self, Request};

use crate::{
    network::{Network, text},
    reference,
};

#[derive(Clone, Debug)]
enum Step {
    Add {
        container: usize,
        ifname: usize,
        requested: Option<usize>,
    },
    Del {
        container: usize,
        ifname: usize,
    },
    Check {
        container: usize,
        ifname: usize,
    },
    /// A record from before the interface was part of it.
    PlantOld {
        container: usize,
        address: usize,
    },
}

const CONTAINERS: [&str; 4] = ["c1", "c2", "c-3", "c4_x.y"];
const IFNAMES: [&str; 2] = ["eth0", "net1"];

/// A configuration, and addresses of its ranges that may be asked for.
#[derive(Clone, Debug)]
struct Setting {
    ipam: Value,
    addresses: &'static [&'static str],
}

impl Setting {
    fn address(&self, index: usize) -> &'static str {
        self.addresses[index % self.addresses.len()]
    }
}

fn steps(one_set: bool) -> impl Strategy<Value = Vec<Step>> {
    let (container, ifname) = (0..CONTAINERS.len(), 0..IFNAMES.len());
    let add = (container.clone(), ifname.clone()).prop_map(|(container, ifname)| Step::Add {
        container,
        ifname,
        requested: None,
    });
    let del =
        (container.clone(), ifname.clone()).prop_map(|(container, ifname)| Step::Del { container, ifname });
    let check =
        (container.clone(), ifname.clone()).prop_map(|(container, ifname)| Step::Check { container, ifname });
    let ask = (container.clone(), ifname, 0usize..8).prop_map(|(container, ifname, address)| Step::Add {
        container,
        ifname,
        requested: Some(address),
    });
    let old = (container, 0usize..8).prop_map(|(container, address)| Step::PlantOld { container, address });
    let rare = u32::from(one_set);
    let step = prop_oneof![6 => add, 4 => del, 1 => check, 2 * rare => ask, rare => old];
    prop::collection::vec(step, 1..24)
}

/// Takes the step in both networks and compares what they say.
fn take(step: &Step, setting: &Setting, ours: &Network, theirs: &Network) {
    match *step {
        Step::Add { container, ifname, requested } => {
            let (container, ifname) = (CONTAINERS[container], IFNAMES[ifname]);
            let requested = requested.map(|address| setting.address(address));
            let addresses: Vec<IpAddr> = requested.iter().map(|address| address.parse().unwrap()).collect();
            let answer =
                host_local::add(&Request { requested: addresses, ..ours.request(container, ifname) });
            let expected = reference::run(theirs, "ADD", container, ifname, requested);
            match (&answer, &expected) {
                (Ok(answer), Ok(expected)) => assert_eq!(text(answer), *expected, "{step:?}"),
                (Err(_), Err(_)) => {}
                _ => panic!("{step:?}: ours {answer:?}, theirs {expected:?}"),
            }
        }
        Step::Del { container, ifname } => {
            let (container, ifname) = (CONTAINERS[container], IFNAMES[ifname]);
            ours.del(container, ifname).unwrap();
            reference::run(theirs, "DEL", container, ifname, None).unwrap();
        }
        Step::Check { container, ifname } => {
            let (container, ifname) = (CONTAINERS[container], IFNAMES[ifname]);
            let answer = ours.check(container, ifname, &[]);
            let expected = reference::run(theirs, "CHECK", container, ifname, None);
            assert_eq!(answer.is_ok(), expected.is_ok(), "{step:?}: ours {answer:?}, theirs {expected:?}");
        }
        Step::PlantOld { container, address } => {
            for network in [ours, theirs] {
                fs::create_dir_all(network.file("")).unwrap();
                // As any host-local does: a lease's file is written once.
                let file = network.file(setting.address(address));
                let _ = fs::remove_file(&file);
                fs::write(file, CONTAINERS[container]).unwrap();
            }
        }
    }
    assert_eq!(ours.files(), theirs.files(), "after {step:?}");
}

fn same_story(setting: &Setting, steps: &[Step]) {
    let (ours, theirs) = (Network::new(setting.ipam.clone()), Network::new(setting.ipam.clone()));
    for step in steps {
        take(step, setting, &ours, &theirs);
    }
}

fn one_set() -> impl Strategy<Value = Setting> {
    prop_oneof![
        Just(Setting {
            ipam: json!({"subnet": "10.0.0.0/29"}),
            addresses: &["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.6"],
        }),
        Just(Setting {
            ipam: json!({"ranges": [[{"subnet": "10.0.0.0/30"}, {"subnet": "10.0.0.4/30", "gateway": "10.0.0.6"}]]}),
            addresses: &["10.0.0.2", "10.0.0.5", "10.0.0.6"],
        }),
        Just(Setting {
            ipam: json!({"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.0", "rangeEnd": "10.0.0.3"}),
            addresses: &["10.0.0.0", "10.0.0.2", "10.0.0.3"],
        }),
        Just(Setting {
            ipam: json!({"subnet": "fd00::/64", "rangeStart": "fd00::5", "rangeEnd": "fd00::8", "gateway": "fe80::1"}),
            addresses: &["fd00::5", "fd00::8"],
        }),
    ]
}

fn several_sets() -> impl Strategy<Value = Setting> {
    let two =
        json!({"ranges": [[{"subnet": "10.0.0.0/29"}], [{"subnet": "fd00::/125", "gateway": "fd00::3"}]]});
    let three = json!({
        "subnet": "fd00:0:0:1::/64", "rangeStart": "fd00:0:0:1:0:0:1:0",
        "ranges": [[{"subnet": "10.0.0.0/30"}, {"subnet": "10.0.1.0/30"}], [{"subnet": "10.2.0.0/16"}]],
    });
    prop_oneof![Just(two), Just(three)].prop_map(|ipam| Setting { ipam, addresses: &[] })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn one_range_set_tells_the_same_story(setting in one_set(), steps in steps(true)) {
        same_story(&setting, &steps);
    }

    #[test]
    fn several_range_sets_tell_the_same_story(setting in several_sets(), steps in steps(false)) {
        same_story(&setting, &steps);
    }
}

#[test]
fn the_same_configurations_are_refused() {
    let refused = [
        json!({"subnet": "10.0.0.0/31"}),
        json!({"subnet": "10.0.0.0/32"}),
        json!({"subnet": "fd00::/127"}),
        json!({"subnet": "10.0.0.1/24"}),
        json!({"subnet": "10.0.0.0"}),
        json!({"subnet": "::ffff:10.0.0.0/120"}),
        json!({"subnet": "10.0.0.0/24", "rangeStart": "10.0.1.1"}),
        json!({"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.9", "rangeEnd": "10.0.0.5"}),
        json!({"subnet": "10.0.0.0/24", "rangeEnd": "10.0.0.0"}),
        json!({"subnet": "10.0.0.0/24", "resolvConf": "/nonexistent/resolv.conf"}),
        json!({"ranges": []}),
        json!({"ranges": [[]]}),
        json!({"ranges": [[{"rangeStart": "10.0.0.1"}]]}),
        json!({"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "fd00::/64"}]]}),
        json!({"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "10.0.0.0/25"}]]}),
        json!({"ranges": [[{"subnet": "10.0.0.0/24"}], [{"subnet": "10.0.0.0/25"}]]}),
    ];
    for ipam in refused {
        let network = Network::new(ipam.clone());
        assert!(network.add("c1", "eth0").is_err(), "ours accepts {ipam}");
        assert!(reference::add(&network, "c1").is_err(), "theirs accepts {ipam}");
    }
}

#[test]
fn a_requested_address_outside_the_ranges_is_refused_alike() {
    let network = Network::new(json!({"subnet": "10.0.0.0/24", "rangeEnd": "10.0.0.99"}));
    for address in ["10.0.0.100", "10.0.0.0", "10.1.0.2", "fd00::2", "10.0.0.1"] {
        assert!(network.add_with("c1", &[address]).is_err(), "ours gives {address}");
        assert!(
            reference::run(&network, "ADD", "c1", "eth0", Some(address)).is_err(),
            "theirs gives {address}"
        );
    }
    assert!(network.held().is_empty());
}

#[test]
fn the_same_ranges_and_gateways_are_derived() {
    let accepted = [
        json!({"subnet": "10.0.0.0/30"}),
        json!({"subnet": "10.0.0.0/024"}),
        json!({"subnet": "10.0.0.0/24", "gateway": ""}),
        json!({"subnet": "10.0.0.0/24", "gateway": "fe80::1"}),
        json!({"subnet": "10.0.0.0/24", "gateway": "::ffff:10.0.0.1"}),
        json!({"subnet": "10.0.0.0/24", "ranges": null, "routes": null, "resolvConf": null}),
        json!({"subnet": "fd00::/126"}),
        json!({"subnet": "2001:db8::/32", "rangeStart": "2001:db8:0:0:1:0:0:1"}),
        json!({"subnet": "2001:db8::/32", "rangeStart": "2001:DB8:0:1:0:1:0:01"}),
        json!({"subnet": "2001:db8::/32", "rangeStart": "2001:db8::ffff:10.0.0.2"}),
    ];
    for ipam in accepted {
        let (ours, theirs) = (Network::new(ipam.clone()), Network::new(ipam.clone()));
        let answer = ours.add("c1", "eth0").unwrap();
        let expected = reference::run(&theirs, "ADD", "c1", "eth0", None).unwrap();
        assert_eq!(text(&answer), expected, "{ipam}");
        assert_eq!(ours.files(), theirs.files(), "{ipam}");
    }
}

#[test]
fn routes_and_dns_are_passed_on_alike() {
    let resolv_conf = tempfile::NamedTempFile::new().unwrap();
    let content = "# x\nnameserver 10.0.0.53\nnameserver fd00::53\ndomain a.example\nsearch b.example c.example\n\
                   options ndots:2\noptions rotate edns0\n";
    fs::write(resolv_conf.path(), content).unwrap();
    let ipam = json!({
        "subnet": "10.0.0.0/24",
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "10.9.8.7/16", "gw": "10.0.0.9"}, {"dst": "::/0", "gw": ""}],
        "resolvConf": resolv_conf.path(),
    });
    let (ours, theirs) = (Network::new(ipam.clone()), Network::new(ipam));
    let answer = ours.add("c1", "eth0").unwrap();
    let expected = reference::add(&theirs, "c1").unwrap();
    assert_eq!(serde_json::to_value(&answer.routes).unwrap(), expected["routes"]);
    assert_eq!(serde_json::to_value(&answer.dns).unwrap(), expected["dns"]);
}

#[test]
fn files_have_the_same_modes() {
    let ipam = json!({"subnet": "10.0.0.0/24"});
    let (ours, theirs) = (Network::new(ipam.clone()), Network::new(ipam));
    ours.add("c1", "eth0").unwrap();
    reference::add(&theirs, "c1").unwrap();
    for name in ["", "lock", "10.0.0.2", "last_reserved_ip.0"] {
        let mode = |network: &Network| fs::metadata(network.file(name)).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&theirs), "{name}");
    }
}
