//! Claims that a kubelet has the agent prepare and unprepare, whatever kubelet and API server do.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::api_claims::{claim, path};
use crate::api_store::Mood;
use crate::cluster::{Cluster, kubelet_root, timed};
use crate::fake_kubelet::{FakeKubelet, Version};
use crate::rig::{Rig, eventually};

#[test]
fn a_claim_is_written_down_before_the_answer_and_preparing_it_twice_changes_nothing() {
    let cluster = Cluster::start();
    cluster.keep("wire", "eth1", &["web"], ["100M", "97656250m"]);
    assert_eq!(cluster.prepare("wire").unwrap(), ["eth1"]);
    assert_eq!(cluster.claim_files(), ["uid-wire.json"]);
    let file = cluster.rig.state().join("claims/uid-wire.json");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"egress\":100000000") && text.contains("\"ingress\":97657"), "{text}");
    assert!(text.contains("\"share_id\":\"s-1\"") && text.contains("\"uid\":\"pod-web\""), "{text}");
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(cluster.prepare("wire").unwrap(), ["eth1"]);
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), written);
    assert_eq!(cluster.unprepare("wire"), "");
    assert!(cluster.claim_files().is_empty());
}

#[test]
fn unpreparing_a_claim_that_was_never_prepared_succeeds() {
    let cluster = Cluster::start();
    assert_eq!(cluster.unprepare("unknown"), "");
    cluster.prepared("wire", "web", ["1M", "1M"]);
    for _ in 0..2 {
        assert_eq!(cluster.unprepare("wire"), "");
    }
}

#[test]
fn one_bad_claim_among_several_fails_alone() {
    let cluster = Cluster::start();
    for (name, device) in [("one", "eth1"), ("two", "eth9"), ("three", "eth2")] {
        cluster.keep(name, device, &["web"], ["1M", "1M"]);
    }
    let prepared = cluster.kubelet.prepare(&[
        ("team", "one", "uid-one"),
        ("team", "two", "uid-two"),
        ("team", "three", "uid-three"),
        ("team", "four", "uid-four"),
    ]);
    assert!(prepared["uid-one"].is_ok() && prepared["uid-three"].is_ok(), "{prepared:?}");
    let error = prepared["uid-two"].as_ref().unwrap_err();
    assert!(error.contains("claim team/two: device eth9 is no uplink of this node"), "{error}");
    let error = prepared["uid-four"].as_ref().unwrap_err();
    assert!(error.contains("no such object (404)"), "{error}");
    assert_eq!(cluster.claim_files(), ["uid-one.json", "uid-three.json"]);
}

#[test]
fn claims_that_cannot_be_had_are_refused_with_the_reason() {
    let cluster = Cluster::start();
    for (pods, rates, fault) in [
        (["web"].as_slice(), ["2G", "1M"], "2G bit/s of egress are more than uplink eth1 has, 1G"),
        (&["web"], ["1M", "18E"], "of ingress are more than uplink eth1 has"),
        (&["web"], ["-1M", "1M"], "is negative"),
        (&["web"], ["1M", "99E"], "is larger"),
        (&["web"], ["0", "1M"], "is 0, which is no bandwidth"),
        (&["a", "b"], ["1M", "1M"], "2 pods share it (a, b)"),
        (&[], ["1M", "1M"], "reserved for no pod"),
    ] {
        cluster.keep("wire", "eth1", pods, rates);
        let error = cluster.prepare("wire").unwrap_err();
        assert!(error.contains(fault), "{fault}: {error}");
    }
    let mut foreign = claim("wire", "eth1", &["web"], ["1M", "1M"]);
    foreign["status"]["allocation"]["devices"]["results"][0]["driver"] = json!("net.example.com");
    cluster.server.store().objects.insert(path("wire"), foreign);
    let error = cluster.prepare("wire").unwrap_err();
    assert!(error.contains("by other drivers only"), "{error}");
    assert!(cluster.claim_files().is_empty());
    assert!(cluster.rig.log().contains("a claim is not prepared"));
}

#[test]
fn a_server_that_forbids_or_lags_fails_new_claims_and_none_that_is_prepared() {
    let mut cluster = Cluster::start();
    cluster.prepared("known", "web", ["1M", "1M"]);
    cluster.keep("new", "eth1", &["web"], ["1M", "1M"]);
    cluster.server.store().mood = Mood::Forbids;
    let error = cluster.prepare("new").unwrap_err();
    assert!(error.contains("reading the claim: this node may not do that (403)"), "{error}");
    assert_eq!(cluster.prepare("known").unwrap(), ["eth1"]);
    cluster.server.store().mood = Mood::Well;
    cluster.server.store().lag = Duration::from_secs(20);
    let (error, took) = timed(|| cluster.prepare("new").unwrap_err());
    assert!(error.contains("the API server does not answer"), "{error}");
    assert!(took < Duration::from_secs(15), "{took:?}");
    cluster.server.store().lag = Duration::ZERO;
    cluster.server.go_away();
    let error = cluster.prepare("new").unwrap_err();
    assert!(error.contains("onnection refused"), "{error}");
    assert_eq!(cluster.unprepare("known"), "");
    cluster.server.come_back(&cluster.rig);
    assert_eq!(cluster.prepare("new").unwrap(), ["eth1"]);
}

#[test]
fn a_claim_that_is_prepared_stays_so_when_its_uplink_has_less() {
    let mut cluster = Cluster::start();
    cluster.prepared("wire", "web", ["800M", "1M"]);
    let config = cluster.rig.lab.root().join("config.toml");
    let text = fs::read_to_string(&config).unwrap().replace("egress = '1G'", "egress = '500M'");
    fs::write(&config, text).unwrap();
    cluster.restart();
    assert_eq!(cluster.prepare("wire").unwrap(), ["eth1"]);
    cluster.keep("next", "eth1", &["db"], ["800M", "1M"]);
    let error = cluster.prepare("next").unwrap_err();
    assert!(error.contains("800M bit/s of egress are more than uplink eth1 has, 500M"), "{error}");
}

#[test]
fn an_unreadable_claim_is_named_and_keeps_no_agent_from_starting() {
    let mut cluster = Cluster::start();
    cluster.prepared("torn", "web", ["1M", "1M"]);
    cluster.prepared("whole", "db", ["1M", "1M"]);
    fs::write(cluster.rig.state().join("claims/uid-torn.json"), "{\"format\":1").unwrap();
    cluster.restart();
    cluster.until_warned("a claim's file cannot be read");
    assert_eq!(cluster.claim_files(), ["uid-whole.json"]);
    assert_eq!(cluster.prepare("torn").unwrap(), ["eth1"]);
}

#[test]
fn a_state_directory_that_cannot_be_written_fails_the_claim_and_not_the_agent() {
    let cluster = Cluster::start();
    cluster.keep("wire", "eth1", &["web"], ["1M", "1M"]);
    fs::write(cluster.rig.state().join("claims"), "in the way").unwrap();
    let error = cluster.prepare("wire").unwrap_err();
    assert!(error.contains("cannot create"), "{error}");
    fs::remove_file(cluster.rig.state().join("claims")).unwrap();
    assert_eq!(cluster.prepare("wire").unwrap(), ["eth1"]);
}

#[test]
fn a_device_is_unhealthy_while_its_uplink_has_no_carrier() {
    let cluster = Cluster::start();
    for version in [Version::V1, Version::V1Alpha1] {
        let mut health = cluster.kubelet.watch(version);
        let of = |told: &[(String, bool, String)]| {
            told.iter().map(|(device, healthy, _)| (device.clone(), *healthy)).collect::<Vec<_>>()
        };
        let states = |one, two| vec![("eth1".to_owned(), one), ("eth2".to_owned(), two)];
        let mut until = |wanted: Vec<(String, bool)>| loop {
            let told = health.next();
            if of(&told) == wanted {
                break told;
            }
        };
        until(states(true, true));
        cluster.rig.ip(&["link", "set", "peer1", "down"]);
        let told = until(states(false, true));
        assert_eq!(told[0].2, "uplink eth1 has no carrier");
        cluster.rig.ip(&["link", "set", "peer1", "up"]);
        until(states(true, true));
    }
}

#[test]
fn a_kubelet_that_comes_later_or_refuses_is_told_of_in_the_status() {
    let mut rig = Rig::bare();
    let root = kubelet_root(&rig);
    let config = rig.lab.root().join("config.toml");
    fs::write(&config, format!("[kubernetes]\nkubeconfig = '/nowhere'\nkubelet_root = '{}'", root.display()))
        .unwrap();
    rig.run_with("auto", &["--config", config.to_str().unwrap()]);
    let warned = |said: &str| rig.status().warnings.iter().any(|warning| warning.contains(said));
    eventually("no registry", || warned("plugins_registry: No such file or directory"));
    let mut kubelet = FakeKubelet::new(&root);
    kubelet.register();
    eventually("registered", || !warned("is not registered"));
    kubelet.notify(&kubelet.registry().remove(0), false, "version is not supported");
    eventually("refused", || warned("is not registered at the kubelet: version is not supported"));
    assert!(rig.status().healthy);
}

/// A kubelet that has lost its own state has nothing unprepared.
#[test]
fn a_claim_is_forgotten_once_the_server_has_said_for_a_while_that_its_pod_has_it_no_more() {
    let mut cluster = Cluster::start();
    let config = cluster.rig.lab.root().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("[kubernetes]", "[kubernetes]\nforget_claims_after = 2")).unwrap();
    cluster.restart();
    for name in ["gone", "anew", "others", "used", "kept"] {
        cluster.prepared(name, name, ["10M", "10M"]);
    }
    let port = cluster.container(2, "used");
    cluster.rig.attach(&port).unwrap();
    // A server that is away, forbids, or knows no such kind of objects has said nothing.
    cluster.server.store().mood = Mood::HasNoSlices;
    std::thread::sleep(Duration::from_secs(4));
    cluster.server.store().mood = Mood::Forbids;
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(cluster.claim_files().len(), 5);
    {
        let mut store = cluster.server.store();
        for name in ["gone", "used"] {
            store.delete_claim(&path(name));
        }
        let other = claim("anew", "eth1", &["anew"], ["10M", "10M"]);
        store.objects.insert(path("anew"), other);
        store.objects.get_mut(&path("anew")).unwrap()["metadata"]["uid"] = json!("uid-another");
        store.keep_claim(path("others"), claim("others", "eth1", &["next"], ["10M", "10M"]));
        store.mood = Mood::Well;
    }
    eventually("they are forgotten", || cluster.claim_files() == ["uid-kept.json", "uid-used.json"]);
    assert_eq!(cluster.limits(&port), [Some(10), Some(10)]);
    assert!(cluster.rig.log().contains("forgotten: the API server says"));
    cluster.rig.detach(&port);
    eventually("it is no more attached", || cluster.claim_files() == ["uid-kept.json"]);
    assert_eq!(cluster.unprepare("gone"), "");
}

#[test]
fn a_claim_is_prepared_in_milliseconds_beside_five_hundred() {
    let cluster = Cluster::start();
    for number in 0..500 {
        cluster.prepared(&format!("wire-{number}"), &format!("pod-{number}"), ["1M", "1M"]);
    }
    let mut took: Vec<_> = (500..600)
        .map(|number| {
            let name = format!("wire-{number}");
            cluster.keep(&name, "eth1", &["web"], ["1M", "1M"]);
            timed(|| cluster.prepare(&name).unwrap()).1
        })
        .collect();
    took.sort();
    println!("prepared in {:?} (median), {:?} (99 of 100)", took[50], took[98]);
    let most = if cfg!(debug_assertions) { Duration::from_millis(100) } else { Duration::from_millis(5) };
    assert!(took[50] <= most, "{:?}", took[50]);
}
