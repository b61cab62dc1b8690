//! NetworkPolicy engines and firewalls, by the shape of their rules: what they let through is fast, what they refuse never passes, and `status` warns of
//! nothing.

use std::net::SocketAddr;
use std::process::Command;

use shunt_lab::Protocol;

use crate::heeded::{echoes, nft, share_of, stage, talk, until_heeded};
use crate::stage::Stage;

/// The node, where two lets nobody in but one by port 7000, and all others are let alone.
struct Policed {
    stage: Stage,
}

impl Policed {
    /// Rules as `engine` puts them, about the addresses of two and of one.
    fn by(engine: impl Fn(&Stage, [&str; 2], &str)) -> Self {
        let stage = stage("filters = 'auto'");
        let addresses = |place: usize| stage.sandboxes[place].addresses();
        for (policed, allowed) in addresses(1).into_iter().zip(addresses(0)) {
            let program = if policed.is_ipv4() { "iptables-nft" } else { "ip6tables-nft" };
            engine(&stage, [&policed.to_string(), &allowed.to_string()], program);
        }
        until_heeded(&stage, "two");
        Self { stage }
    }

    fn is_answered(&self, who: usize, protocol: Protocol, to: SocketAddr) -> bool {
        talk(&self.stage.sandboxes[who], protocol, to).is_some_and(|mut talk| talk.chat(2, 100).is_ok())
    }

    /// What is let through, and how; `protocols` are those of the policy.
    fn check(&self, protocols: &[Protocol]) {
        let [allowed, refused] = [7000, 7001].map(|port| echoes(&self.stage, port));
        for echo in &allowed {
            for protocol in protocols {
                let mut talk = talk(&self.stage.sandboxes[0], *protocol, echo.address()).unwrap();
                let fast = share_of(&self.stage, "one", &mut talk);
                assert!(fast > 0.9, "{protocol:?} to {}: {fast}", echo.address());
                assert!(!self.is_answered(2, *protocol, echo.address()), "three is nobody's friend");
            }
        }
        for echo in &refused {
            for protocol in protocols {
                assert!(
                    !self.is_answered(0, *protocol, echo.address()),
                    "{protocol:?} to {}",
                    echo.address()
                );
            }
        }
        // Nobody has a policy for one.
        let one = &self.stage.sandboxes[0];
        let open = one.echo(one.addresses()[0], 7002).unwrap();
        assert!(self.is_answered(2, Protocol::Tcp, open.address()));
        assert_eq!(self.stage.node.agent().status().unwrap().warnings, Vec::<String>::new());
    }
}

/// Runs `program` in the node's namespace with each of these arguments.
fn rules(stage: &Stage, program: &str, all: &[String]) {
    let script: Vec<String> = all.iter().map(|rule| format!("{program} -w {rule}")).collect();
    let run = || {
        let done = Command::new("sh").args(["-ec", &script.join("\n")]).output().expect("a shell runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    stage.node.namespace().enter(run).unwrap();
}

#[test]
fn an_engine_that_marks_what_a_policy_allows() {
    let policed = Policed::by(|stage, [policed, allowed], program| {
        rules(
            stage,
            program,
            &[
                "-N ENGINE",
                "-N POD",
                "-N POLICY",
                "-I FORWARD -m comment --comment engine -j ENGINE",
                &format!(
                    "-A ENGINE -p {} -j ACCEPT",
                    if program.starts_with("ip6") { "ipv6-icmp" } else { "icmp" }
                ),
                &format!("-A ENGINE -d {policed} -j POD"),
                &format!("-A ENGINE -s {policed} -j POD"),
                &format!("-A ENGINE -m physdev --physdev-is-bridged -d {policed} -j POD"),
                "-A ENGINE -m mark --mark 0x20000/0x20000 -j ACCEPT",
                "-A POD -m conntrack --ctstate INVALID -j DROP",
                "-A POD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
                &format!("-A POD -d {policed} -m addrtype --src-type LOCAL -j ACCEPT"),
                &format!("-A POD -d {policed} -j POLICY"),
                "-A POD -m mark ! --mark 0x10000/0x10000 -m limit --limit 10/min -j NFLOG --nflog-group 100",
                "-A POD -m mark ! --mark 0x10000/0x10000 -j REJECT",
                "-A POD -j MARK --set-xmark 0/0x10000",
                "-A POD -j MARK --set-xmark 0x20000/0x20000",
                &format!("-A POLICY -s {allowed} -p tcp --dport 7000 -j MARK --set-xmark 0x10000/0x10000"),
                &format!("-A POLICY -s {allowed} -p udp --dport 7000 -j MARK --set-xmark 0x10000/0x10000"),
                "-A POLICY -m mark --mark 0x10000/0x10000 -j RETURN",
            ]
            .map(str::to_owned),
        );
    });
    policed.check(&[Protocol::Tcp, Protocol::Udp]);
}

#[test]
fn an_engine_that_asks_a_queue_about_what_is_new() {
    let policed = Policed::by(|stage, [policed, allowed], program| {
        let refused = |protocol: &str| {
            [
                format!(
                    "-t mangle -A POSTROUTING -d {policed} -p {protocol} ! -s {allowed} -m conntrack --ctstate NEW -j NFQUEUE --queue-num 103"
                ),
                format!(
                    "-t mangle -A POSTROUTING -d {policed} -p {protocol} ! --dport 7000 -m conntrack --ctstate NEW -j NFQUEUE --queue-num 103"
                ),
            ]
        };
        // One queue has no reader and lets go, the other has none and does not.
        let first = [
            "-t mangle -A POSTROUTING -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT".to_owned(),
            format!(
                "-t mangle -A POSTROUTING -d {policed} -s {allowed} -p tcp --dport 7000 -m conntrack --ctstate NEW -j NFQUEUE --queue-num 102 --queue-bypass"
            ),
        ];
        let all: Vec<String> = first.into_iter().chain(refused("tcp")).chain(refused("udp")).collect();
        rules(stage, program, &all);
    });
    policed.check(&[Protocol::Tcp, Protocol::Udp]);
}

#[test]
fn a_firewall_of_sets_and_maps_of_states() {
    let policed = Policed::by(|stage, [policed, allowed], program| {
        let family = if program.starts_with("ip6") { "ip6" } else { "ip" };
        nft(
            stage,
            &format!(
                "table {family} firewall {{
                    set policed {{ type {family_address}; elements = {{ {policed} }}; }};
                    set allowed {{ type {family_address} . {family_address} . inet_service; elements = {{ {allowed} . {policed} . 7000 }}; }};
                    chain judge {{ {family} saddr . {family} daddr . tcp dport @allowed accept;
                                    {family} saddr . {family} daddr . udp dport @allowed accept;
                                    limit rate 3/minute log prefix \"refused: \"; reject; }};
                    chain forward {{ type filter hook forward priority filter; policy accept;
                        ct state vmap {{ established : accept, related : accept, invalid : drop }};
                        meta l4proto ipv6-icmp accept; {family} daddr @policed goto judge; }}; }}",
                family_address = if family == "ip6" { "ipv6_addr" } else { "ipv4_addr" },
            ),
        );
    });
    policed.check(&[Protocol::Tcp, Protocol::Udp]);
}

#[test]
fn a_firewall_of_the_bridge_without_states() {
    let policed = Policed::by(|stage, [policed, allowed], program| {
        let family = if program.starts_with("ip6") { "ip6" } else { "ip" };
        nft(
            stage,
            &format!(
                "table bridge firewall {{ chain forward_{family} {{ type filter hook forward priority filter; policy accept;
                    {family} daddr {policed} meta l4proto {{ tcp, udp }} jump policy_{family}; }};
                    chain policy_{family} {{ {family} saddr {allowed} th dport 7000 accept; th sport 7002 accept; drop; }}; }}"
            ),
        );
    });
    policed.check(&[Protocol::Tcp, Protocol::Udp]);
}
