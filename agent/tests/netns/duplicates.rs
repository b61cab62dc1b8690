//! `enabledad`: a container's IPv6 addresses are looked for on the bridge before its ADD is done.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use serde_json::json;
use shunt_lab::Container;
use shunt_lab::cni::Refusal;

use crate::intruder::Intruder;
use crate::stage::Stage;

/// What the range gives the first container.
const FIRST: &str = "fd77::2";

/// Before it asks, the kernel waits for up to a second, and for an answer it waits one.
const ASKED: Duration = Duration::from_secs(1);

#[test]
fn an_address_that_somebody_on_the_bridge_has_fails_the_add_and_a_free_one_works_at_once() {
    let mut stage = Stage::empty();
    stage.network = stage.network.with("enabledad", json!(true));
    let open = stage.network.clone().with("enabledad", json!(false));
    // The bridge comes with its first container.
    let before = Container::create(&stage.lab, "before").unwrap();
    let attachment = open.add(stage.node.namespace(), &before).unwrap();
    open.del(stage.node.namespace(), &before, &attachment.result).unwrap();
    let intruder = Intruder::enter(&stage);
    let address = |verb, given: &str| {
        intruder.namespace.command("ip", &["address", verb, given, "dev", "eth0", "nodad"]).unwrap()
    };
    let wanted = std::net::Ipv6Addr::from(u128::from(FIRST.parse::<std::net::Ipv6Addr>().unwrap()) + 1);
    address("add", &format!("{wanted}/64"));
    stage.empty = stage.node.inventory().unwrap();

    let container = Container::create(&stage.lab, "late").unwrap();
    let error = stage.network.add(stage.node.namespace(), &container).unwrap_err();
    let refusal = error.downcast::<Refusal>().unwrap();
    assert!(refusal.to_string().contains(&wanted.to_string()), "{refusal}");
    assert_eq!(stage.left(), Vec::<String>::new());
    assert!(container.namespace().command("ip", &["link", "show", "eth0"]).is_err());

    // The next one is nobody's: it was asked for, and works when the ADD is done.
    let begun = Instant::now();
    stage.add("next");
    assert!(begun.elapsed() > ASKED, "nobody was asked: {:?}", begun.elapsed());
    let next = &stage.sandboxes[0];
    let own = next.attachment().ipv6().unwrap();
    next.namespace().enter(|| UdpSocket::bind((own, 7000)).unwrap()).unwrap();
    let shown = next.namespace().command("ip", &["-6", "address", "show", "dev", "eth0"]).unwrap();
    let line = shown.lines().find(|line| line.contains(&own.to_string())).unwrap();
    assert!(!line.contains("tentative") && !line.contains("dadfailed"), "{shown}");
}
