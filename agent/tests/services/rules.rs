//! kube-proxy's rules for one Service, written down as kube-proxy would: jumps, the hairpin mark, DNAT, masquerade of what
//! is marked, and the drop of what conntrack calls invalid.

use std::net::Ipv4Addr;

use shunt_lab::Namespace;

/// The Service's virtual address, in nobody's subnet.
pub(crate) const VIRTUAL: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);

/// The Service's port.
pub(crate) const SERVICE_PORT: u16 = 80;

/// The port that its one endpoint listens on.
pub(crate) const ENDPOINT_PORT: u16 = 7000;

/// How kube-proxy is told to write its rules.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode {
    Iptables,
    Nftables,
}

impl Mode {
    /// Writes the rules for a Service whose endpoint is `endpoint`.
    pub(crate) fn install(self, node: &Namespace, endpoint: Ipv4Addr) {
        match self {
            Self::Iptables => iptables(node, endpoint),
            Self::Nftables => nftables(node, endpoint),
        }
    }
}

fn iptables(node: &Namespace, endpoint: Ipv4Addr) {
    let nat = [
        "-N KUBE-SERVICES",
        "-N KUBE-SVC",
        "-N KUBE-SEP",
        "-N KUBE-MARK-MASQ",
        "-N KUBE-POSTROUTING",
        "-A PREROUTING -j KUBE-SERVICES",
        "-A OUTPUT -j KUBE-SERVICES",
        "-A POSTROUTING -j KUBE-POSTROUTING",
        "-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000",
        "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
        "-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000",
        "-A KUBE-POSTROUTING -j MASQUERADE --random-fully",
    ];
    let mut rules: Vec<String> = nat.iter().map(|rule| format!("-t nat {rule}")).collect();
    rules.push(format!("-t nat -A KUBE-SEP -s {endpoint}/32 -j KUBE-MARK-MASQ"));
    for protocol in ["tcp", "udp"] {
        let service = format!("-d {VIRTUAL}/32 -p {protocol} --dport {SERVICE_PORT}");
        rules.push(format!("-t nat -A KUBE-SERVICES {service} -j KUBE-SVC"));
        let to = format!("--to-destination {endpoint}:{ENDPOINT_PORT}");
        rules.push(format!("-t nat -A KUBE-SEP -p {protocol} -j DNAT {to}"));
    }
    rules.push("-t nat -A KUBE-SVC -j KUBE-SEP".to_owned());
    rules.push("-A FORWARD -m conntrack --ctstate INVALID -j DROP".to_owned());
    rules.push("-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT".to_owned());
    for rule in rules {
        let words: Vec<_> = ["-w"].into_iter().chain(rule.split(' ')).collect();
        node.command("iptables", &words).unwrap();
    }
}

fn nftables(node: &Namespace, endpoint: Ipv4Addr) {
    let table = format!(
        "table ip kube-proxy {{
            map service-ips {{
                type ipv4_addr . inet_proto . inet_service : verdict
                elements = {{
                    {VIRTUAL} . tcp . {SERVICE_PORT} : goto service,
                    {VIRTUAL} . udp . {SERVICE_PORT} : goto service
                }}
            }}
            chain service {{
                goto endpoint
            }}
            chain endpoint {{
                ip saddr {endpoint} meta mark set mark or 0x4000
                meta l4proto tcp dnat to {endpoint}:{ENDPOINT_PORT}
                meta l4proto udp dnat to {endpoint}:{ENDPOINT_PORT}
            }}
            chain services {{
                ip daddr . meta l4proto . th dport vmap @service-ips
            }}
            chain nat-prerouting {{
                type nat hook prerouting priority dstnat; policy accept;
                jump services
            }}
            chain nat-output {{
                type nat hook output priority -100; policy accept;
                jump services
            }}
            chain nat-postrouting {{
                type nat hook postrouting priority srcnat; policy accept;
                mark and 0x4000 != 0x4000 return
                meta mark set mark xor 0x4000
                masquerade fully-random
            }}
            chain filter-forward {{
                type filter hook forward priority filter; policy accept;
                ct state invalid drop
            }}
        }}"
    );
    node.command("nft", &[&table]).unwrap();
}
