//! One attachment from Add to Delete.

use serde_json::Value;
use shunt_lab::{Conversation, Echo, Protocol};

use crate::client::{OfCni as _, given};
use crate::world::{World, eventually};

/// The address of a result's container.
fn address(result: &Value) -> String {
    result["ips"][0]["address"].as_str().unwrap().split('/').next().unwrap().to_owned()
}

#[test]
fn containers_that_the_service_has_attached_talk_and_nothing_is_left_of_them() {
    let mut world = World::start();
    let mut client = world.client();
    let asked = ["one", "two"].map(|id| world.container(id));
    let results = asked.clone().map(|asked| client.add(&asked).unwrap());
    assert_eq!(results[0]["cniVersion"], "1.1.0");
    assert_eq!(world.cached(), ["pods-one-eth0", "pods-two-eth0"]);
    for asked in &asked {
        client.check(asked).unwrap();
    }
    let [from, to] = [&world.containers[0], &world.containers[1]].map(|container| container.namespace());
    let echo = Echo::listen(to, address(&results[1]).parse().unwrap(), 7000).unwrap();
    let talk = Conversation::open(from, Protocol::Tcp, echo.address());
    talk.and_then(|mut talk| talk.chat(20, 1200)).unwrap();
    from.command("ip", &["route", "del", "default"]).unwrap();
    let altered = client.check(&asked[0]).unwrap_err().of_cni();
    assert!(altered.msg.contains("route"), "{altered:?}");
    for asked in &asked {
        client.delete(asked).unwrap();
        client.delete(asked).unwrap();
    }
    world.assert_empty();
}

#[test]
fn the_result_is_the_exec_plugin_s() {
    let mut world = World::start();
    let asked = world.container("one");
    let served = world.client().add(&asked).unwrap();
    world.client().delete(&asked).unwrap();
    let network = world.node.network("pods", "cni0", &["10.78.0.0/16"]);
    let mut executed = network.add(world.node.namespace(), &world.containers[0]).unwrap().result;
    network.del(world.node.namespace(), &world.containers[0], &executed).unwrap();
    // The lab's lists are of 1.0.0, and MAC addresses and names are new ones; the next address is the next one.
    let same = |result: &Value| {
        let names: Vec<Value> =
            result["interfaces"].as_array().unwrap().iter().map(|one| one["sandbox"].clone()).collect();
        (names, result["routes"].clone(), result["dns"].clone(), result["ips"][0]["gateway"].clone())
    };
    executed["cniVersion"] = served["cniVersion"].clone();
    assert_eq!(same(&served), same(&executed));
    world.assert_empty();
}

#[test]
fn the_same_request_once_more_has_the_same_answer_and_another_one_is_refused() {
    let mut world = World::start();
    let mut client = world.client();
    let asked = world.container("one");
    let result = client.add(&asked).unwrap();
    assert_eq!(client.add(&asked).unwrap(), result);
    let mut other = asked.clone();
    other.network = given(&world.list(&[{
        let mut shunt = world.shunt();
        shunt["mtu"] = 1400.into();
        shunt
    }]));
    let refused = client.add(&other).unwrap_err().of_cni();
    assert!(refused.msg.contains("eth0"), "{refused:?}");
    client.check(&asked).unwrap();
    world.containers[0].namespace().command("ip", &["link", "del", "eth0"]).unwrap();
    // What is cached is no more: it is made anew.
    client.delete(&asked).unwrap();
    assert_ne!(client.add(&asked).unwrap()["ips"], result["ips"]);
    client.delete(&asked).unwrap();
    world.assert_empty();
}

/// The next namespace often has the inode of the last one.
#[test]
fn a_namespace_that_is_made_again_under_its_name_gets_its_interface() {
    for (version, disable_check) in [("0.3.1", false), ("1.1.0", true)] {
        let mut world = World::start();
        let mut client = world.client();
        let mut list = world.list(&[world.shunt()]);
        list["cniVersion"] = version.into();
        list["disableCheck"] = disable_check.into();
        let asked = world.container_of("one", &list);
        let first = client.add(&asked).unwrap();
        assert_eq!(client.add(&asked).unwrap(), first, "{version}");
        let has_interface =
            |world: &World| world.containers[0].namespace().command("ip", &["link", "show", "eth0"]).is_ok();
        assert!(has_interface(&world));
        // The container's end goes with its namespace, of which nobody tells the service.
        world.containers.clear();
        eventually("the interface is gone with its namespace", || {
            let ports = world.node.namespace().command("ip", &["-o", "link", "show", "master", "cni0"]);
            ports.unwrap().trim().is_empty()
        });
        let again = world.container_of("one", &list);
        assert_eq!(again.sandbox, asked.sandbox);
        client.add(&again).unwrap();
        assert!(has_interface(&world), "{version}");
        client.delete(&again).unwrap();
        world.assert_empty();
    }
}

#[test]
fn a_delete_without_its_namespace_deletes_all() {
    let mut world = World::start();
    let mut client = world.client();
    let mut asked = world.container("one");
    client.add(&asked).unwrap();
    asked.sandbox.netns.clear();
    client.delete(&asked).unwrap();
    world.assert_empty();
    asked.sandbox.netns = world.lab.root().join("gone.netns").to_str().unwrap().to_owned();
    client.delete(&asked).unwrap();
}

#[test]
fn collection_leaves_what_is_listed_and_without_a_list_everything() {
    let mut world = World::start();
    let mut client = world.client();
    let asked = ["one", "two", "three"].map(|id| world.container(id));
    for asked in &asked {
        client.add(asked).unwrap();
    }
    client.collect(asked[0].network.clone(), None).unwrap();
    assert_eq!(world.cached().len(), 3);
    client.collect(asked[0].network.clone(), Some(&["two"])).unwrap();
    assert_eq!(world.cached(), ["pods-two-eth0"]);
    client.check(&asked[1]).unwrap();
    assert_eq!(client.check(&asked[0]).unwrap_err().of_cni().code, 3, "nothing is known of it");
    client.collect(asked[0].network.clone(), Some(&[])).unwrap();
    world.assert_empty();
}
