//! What goes away and comes back: the API server, the agent, routes; and what is left when shunt is taken off.

use std::fs;

use crate::pods::two;
use crate::world::{Member, seen};

#[test]
fn an_agent_goes_on_with_what_it_knows_while_the_server_is_away() {
    let mut world = two();
    let pods = [world.pod(0, "one"), world.pod(1, "two")];
    world.server.go_away();
    let written = world.members[0].written();
    let node = &mut world.members[0].node;
    node.agent_mut().kill().unwrap();
    node.namespace().command("ip", &["route", "flush", "proto", "83"]).unwrap();
    node.restart_agent().unwrap();
    let (a, b) = (&world.members[0], &world.members[1]);
    a.until("the routes are there again", || a.routes() == Member::routes_to(b));
    a.until("it says so", || a.warns("the nodes are not watched"));
    assert_eq!(a.written(), written);
    let to = (world.address(pods[1], true), 7000).into();
    let own = world.address(pods[0], true);
    let inside = |pod: usize| world.sandboxes[pods[pod]].namespace();
    assert_eq!(seen(inside(0), inside(1), to), [own, own]);
    // Back again, and nothing is wrong.
    let mut server = std::mem::take(&mut world.server);
    world.members.iter().for_each(|member| server.listen(member.node.namespace()));
    world.server = server;
    let (a, b) = (&world.members[0], &world.members[1]);
    a.until("nothing is wrong any more", || !a.warns("the nodes are not watched"));
    assert_eq!(a.routes(), Member::routes_to(b));
}

#[test]
fn deleted_routes_come_back_and_other_programs_routes_stay() {
    let world = two();
    let (a, b) = (&world.members[0], &world.members[1]);
    let ip = |arguments: &[&str]| a.node.namespace().command("ip", arguments).unwrap();
    ip(&["route", "add", "10.250.0.0/24", "via", &b.addresses[0], "proto", "static"]);
    // A stale one of an earlier agent.
    ip(&["route", "add", "10.251.0.0/24", "via", &b.addresses[0], "proto", "83"]);
    ip(&["route", "del", &b.pod_cidrs[0], "proto", "83"]);
    a.until("they are as they should be", || a.routes() == Member::routes_to(b));
    assert!(ip(&["route", "show"]).contains("10.250.0.0/24"));
    // Somebody else's to the same pods is left alone.
    ip(&["route", "replace", &b.pod_cidrs[0], "via", "10.99.0.9", "proto", "static"]);
    ip(&["route", "flush", &b.pod_cidrs[0], "proto", "83"]);
    a.until("it says so", || a.warns("another route to 10.244.2.0/24"));
    assert!(ip(&["route", "show", &b.pod_cidrs[0]]).contains("via 10.99.0.9"));
    ip(&["route", "del", &b.pod_cidrs[0], "proto", "static"]);
    a.until("it is gone", || {
        !a.warns("another route to 10.244.2.0/24") && a.routes() == Member::routes_to(b)
    });
    // As routing daemons and network managers have them.
    ip(&["route", "add", &b.pod_cidrs[0], "via", "10.99.0.9", "proto", "bgp", "metric", "100"]);
    a.until("theirs goes first", || a.warns("another route to 10.244.2.0/24"));
    let first = ip(&["route", "get", "10.244.2.7"]);
    assert!(first.contains("via 10.99.0.9"), "{first}");
    assert!(a.node.agent().status().unwrap().healthy);
}

#[test]
fn what_is_uninstalled_leaves_no_route_and_no_configuration() {
    let world = two();
    let a = &world.members[0];
    let said = world.uninstall(0);
    assert!(said.contains("10-shunt.conflist removed"), "{said}");
    assert!(!a.conflist().exists() && !a.node.agent().state().exists());
    assert_eq!(a.routes(), Vec::<String>::new());
}

#[test]
fn what_pods_would_lose_with_the_clusters_network_is_named_and_refused() {
    let mut world = two();
    let pod = world.pod(0, "one");
    let a = &world.members[0];
    let refused = world.try_uninstall(0, &[]);
    assert_eq!(refused.status.code(), Some(3));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    for named in [
        "1 pods would no longer reach those of other nodes, to whom 2 routes",
        "the runtime cannot end 1 pods",
    ] {
        assert!(said.contains(named), "{named} in {said}");
    }
    assert_eq!((a.routes().len(), a.conflist().exists()), (2, true));
    // Another configuration is there to end pods by.
    fs::write(a.directory.join("90-other.conflist"), "{}").unwrap();
    let said = world.try_uninstall(0, &["--check"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("2 routes") && !said.contains("the runtime cannot end"), "{said}");
    fs::remove_file(a.directory.join("90-other.conflist")).unwrap();
    // Without pods nothing is in the way.
    let network = a.network();
    world.sandboxes[pod].delete(&a.node, &network).unwrap();
    let said = world.uninstall(0);
    assert!(said.contains("10-shunt.conflist removed") && a.routes().is_empty(), "{said}");
}
