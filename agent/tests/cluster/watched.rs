//! How the nodes are watched: listed once, by pages, and from then on from where it was.

use crate::world::{Member, World};

/// A node that knows no other.
fn one() -> World {
    let world = World::new(&["a", "b"], "routes = 'host'");
    world.join(0);
    world.members[0].network();
    let both = || world.server.nodes().watched.len() == 2;
    world.members[1].until("both watch", both);
    world
}

/// Ends the watch, and waits for those that go on.
fn go_on(world: &World) {
    let watches = world.server.nodes().watched.len();
    world.server.nodes().end_watches();
    let is_back = || world.server.nodes().watched.len() >= watches + world.members.len();
    world.members[0].until("the nodes are watched again", is_back);
}

#[test]
fn a_watch_that_ends_is_gone_on_with_and_nothing_is_listed_again() {
    let mut world = one();
    let lists = world.server.nodes().lists;
    assert_eq!(lists, world.members.len(), "one of each agent's");
    let watches = world.server.nodes().watched.len();
    world.server.nodes().end_watches();
    // Nobody watches now.
    world.join(1);
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    a.until("the new node is heard of", || a.routes() == Member::routes_to(b));
    a.until("both watch again", || world.server.nodes().watched.len() >= watches + world.members.len());
    // Which is the last thing that a node has to say.
    a.until("both networks are there", || world.server.nodes().patches.len() >= world.members.len());
    world.server.nodes().bookmark();
    let version = world.server.nodes().version();
    std::thread::sleep(std::time::Duration::from_millis(300));
    go_on(&world);
    let last = world.server.nodes().watched.last().cloned().unwrap();
    assert!(last.contains("allowWatchBookmarks=true"), "{last}");
    assert!(last.contains(&format!("resourceVersion={version}")), "{version}: {last}");
    // A server that was away as well.
    let mut server = std::mem::take(&mut world.server);
    server.go_away();
    world.members[0].until("it says so", || world.members[0].warns("the nodes are not watched"));
    world.members.iter().for_each(|member| server.listen(member.node.namespace()));
    world.server = server;
    world.server.nodes().remove("b");
    let a = &world.members[0];
    a.until("it is watched again", || a.routes().is_empty() && !a.warns("the nodes are not watched"));
    assert_eq!(world.server.nodes().lists, lists);
}

#[test]
fn what_the_server_has_forgotten_is_listed_anew() {
    let world = one();
    world.join(1);
    let [a, b] = [0, 1].map(|index| &world.members[index]);
    a.until("the new node is heard of", || a.routes() == Member::routes_to(b));
    let lists = {
        let mut nodes = world.server.nodes();
        nodes.end_watches();
        nodes.remove("b");
        nodes.compact();
        nodes.lists
    };
    a.until("that it is gone is noticed", || a.routes().is_empty());
    assert!(world.server.nodes().lists > lists);
    assert!(!a.warns("the nodes are not watched"), "that is in the nature of it");
}

#[test]
fn many_nodes_are_listed_by_pages() {
    let world = World::new(&[], "routes = 'host'");
    for node in 0..600 {
        world.server.nodes().put(
            &format!("n{node:03}"),
            &[&format!("10.{}.{}.0/24", node / 256, node % 256)],
            &[],
        );
    }
    let mut world = world;
    world.enter("a");
    world.join(0);
    let a = &world.members[0];
    a.network();
    a.until("every node is known", || {
        a.written().unwrap()["plugins"][0]["nonMasqueradeCIDRs"].to_string().contains("10.2.")
    });
    let nodes = world.server.nodes();
    assert_eq!((nodes.lists, nodes.pages), (1, 3));
}
