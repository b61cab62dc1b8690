//! Host ports that the kernel opens, and what becomes of their connections: a container goes, who opens changes, somebody flushes all rules.

use std::io::ErrorKind;

use shunt_lab::Protocol;

use crate::opened::{BOTH, HEED, INNER_PORT, NODE, Opened, published};

/// The reset comes from the node: connection tracking has forgotten the container that is gone, whose host port is nobody's now. The other host port keeps our
/// chains, without which no entry would matter.
#[test]
fn clients_of_a_container_that_is_gone_are_reset() {
    let mut opened = Opened::without_host_port(HEED);
    let other = published(&opened.stage.network, 8002, 7002);
    opened.add_to(&other, "other");
    opened.add("two");
    opened.stage.node.settle().unwrap();
    opened.until_opened(true);
    let two = &opened.stage.sandboxes[2];
    let echoes: Vec<_> = two.addresses().into_iter().map(|ip| two.echo(ip, INNER_PORT).unwrap()).collect();
    let mut talks = Vec::new();
    for from in [&opened.outside, opened.stage.node.namespace()] {
        for to in NODE {
            let mut talk = opened.talk(from, Protocol::Tcp, to).unwrap();
            talk.chat(3, 100).unwrap();
            talks.push((to, talk));
        }
    }
    let gone = opened.stage.sandboxes.pop().expect("a container");
    gone.delete(&opened.stage.node, &opened.published).unwrap();
    drop(echoes);
    for (to, mut talk) in talks {
        let error = talk.chat(1, 100).expect_err("nobody is there");
        let kind = error.root_cause().downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        assert_eq!(kind, Some(ErrorKind::ConnectionReset), "{to}: {error:#}");
    }
    // The next container with the host port is not taken for the last.
    opened.add("next");
    let next = opened.stage.sandboxes.last().expect("a container");
    let _echoes: Vec<_> = next.addresses().into_iter().map(|ip| next.echo(ip, INNER_PORT).unwrap()).collect();
    for to in NODE {
        for protocol in BOTH {
            assert!(opened.is_answered(&opened.outside, protocol, to), "{to} by {protocol:?}");
        }
    }
}
