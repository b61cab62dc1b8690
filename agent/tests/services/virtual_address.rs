//! Container → virtual address → container on the same node.

use shunt_lab::Protocol::{self, Tcp, Udp};

use crate::cluster::Cluster;
use crate::rules::Mode::{self, Iptables, Nftables};

fn the_service_answers(mode: Mode, protocol: Protocol) {
    let cluster = Cluster::start(mode);
    // Several flows, so that no lucky first packet hides what happens to the next.
    for from in [0, 2, 0] {
        cluster.to_service(from, protocol).chat(50, 1200).unwrap();
    }
}

#[test]
fn a_service_by_iptables_answers_over_tcp() {
    the_service_answers(Iptables, Tcp);
}

#[test]
fn a_service_by_iptables_answers_over_udp() {
    the_service_answers(Iptables, Udp);
}

#[test]
fn a_service_by_nftables_answers_over_tcp() {
    the_service_answers(Nftables, Tcp);
}

#[test]
fn a_service_by_nftables_answers_over_udp() {
    the_service_answers(Nftables, Udp);
}

/// TCP would hide a lost first packet by sending it again, a second later.
#[test]
fn no_segment_to_a_service_has_to_be_sent_again() {
    for mode in [Iptables, Nftables] {
        let cluster = Cluster::start(mode);
        for from in [0, 2] {
            cluster.to_service(from, Tcp).chat(50, 1200).unwrap();
            assert_eq!(cluster.sent_again(from), 0, "{mode:?}");
        }
        assert_eq!(cluster.sent_again(1), 0, "{mode:?}");
    }
}

/// The hairpin: the endpoint asks for the Service and gets itself, masqueraded as the node.
#[test]
fn an_endpoint_reaches_itself_by_its_service() {
    for mode in [Iptables, Nftables] {
        let cluster = Cluster::start_with(mode, true);
        for protocol in [Tcp, Udp] {
            cluster.to_service(1, protocol).chat(20, 1000).unwrap();
        }
    }
}

#[test]
fn direct_flows_stay_fast_beside_a_service_between_the_same_two() {
    for mode in [Iptables, Nftables] {
        let cluster = Cluster::start(mode);
        let mut translated = cluster.to_service(0, Tcp);
        translated.chat(20, 1000).unwrap();
        for protocol in [Tcp, Udp] {
            let mut direct = cluster.direct(0, protocol);
            direct.say(100).unwrap();
            let before = ["client", "endpoint"].map(|id| cluster.sent(id));
            direct.chat(300, 1000).unwrap();
            let after = ["client", "endpoint"].map(|id| cluster.sent(id));
            for (before, after) in before.iter().zip(&after) {
                let [fast, all] = [0, 1].map(|at| after[at] - before[at]);
                assert!(all >= 300 && fast * 100 >= all * 99, "{fast} of {all} over {protocol:?}, {mode:?}");
            }
        }
        translated.chat(20, 1000).unwrap();
    }
}

#[test]
fn a_port_without_translated_flows_is_fast_from_its_first_packet_on() {
    let cluster = Cluster::start(Iptables);
    cluster.to_service(0, Tcp).chat(20, 1000).unwrap();
    let other = cluster.sandboxes[2].echo(cluster.sandboxes[2].addresses()[0], 7001).unwrap();
    let before = cluster.sent("other");
    cluster.sandboxes[0].talk_to(Udp, &other).unwrap().chat(300, 500).unwrap();
    let after = cluster.sent("other");
    let [fast, all] = [0, 1].map(|at| after[at] - before[at]);
    assert!(all >= 300 && fast * 100 >= all * 99, "{fast} of {all}");
}

#[test]
fn a_container_that_comes_later_reaches_the_service_too() {
    let mut cluster = Cluster::start(Nftables);
    cluster.add("late");
    for protocol in [Tcp, Udp] {
        cluster.to_service(3, protocol).chat(20, 1000).unwrap();
    }
}

/// Where the kernel shows a translated packet: br_netfilter forwards it inside the bridge, so it never comes out of the
/// bridge device, and `to_container` has to notice it, not `from_host`.
#[test]
fn a_translated_packet_is_forwarded_inside_the_bridge() {
    let cluster = Cluster::start(Iptables);
    let out_of_the_bridge_device = || {
        let node = cluster.node.namespace();
        let text = node.command("ip", &["-json", "-statistics", "link", "show", "cni0"]).unwrap();
        let links: serde_json::Value = serde_json::from_str(&text).unwrap();
        links[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
    };
    let mut talk = cluster.to_service(0, Udp);
    talk.say(100).unwrap();
    let before = out_of_the_bridge_device();
    let to = cluster.node.agent().port("endpoint").unwrap().to.kernel;
    talk.chat(200, 500).unwrap();
    assert!(out_of_the_bridge_device() - before < 20);
    assert!(cluster.node.agent().port("endpoint").unwrap().to.kernel - to >= 200);
}
