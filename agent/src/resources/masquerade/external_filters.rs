//! External filters of the namespace: tables of nf_tables, tables of legacy iptables, and policies of IPsec. Masquerading and host ports in
//! the fast path bypass all of them.

use std::fs;

use nix::libc;
use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::{BaseChain, base_chains, has_ipsec_policies};

/// The agent's own table (`crate::nft`).
const OURS: &str = "shunt";

/// `NF_DROP`.
const DROP: u32 = 0;

/// Where the names of iptables' tables in use are, of IPv4 and of IPv6.
const OLD_TABLES: [&str; 2] = ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"];

/// iptables' table with the chain FORWARD.
const OLD_FILTER: &str = "filter";

/// Whether br_netfilter shows bridged packets to the rules for forwarded ones, of IPv4 and of IPv6.
const BRIDGED_TOO: [&str; 2] =
    ["/proc/sys/net/bridge/bridge-nf-call-iptables", "/proc/sys/net/bridge/bridge-nf-call-ip6tables"];

/// External filters of forwarded packets only.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Forwarding {
    /// Of routed packets.
    pub(crate) routed: Option<String>,
    /// Of bridged packets: bridge rules, or rules for routed packets with br_netfilter.
    pub(crate) bridged: Option<String>,
}

/// The first external filter of forwarded packets (the hook `forward`, iptables' chain FORWARD). Of legacy
/// iptables' tables only their use is known.
///
/// # Errors
/// The kernel cannot say.
pub(crate) fn forwarding() -> Result<Forwarding, NetlinkError> {
    let mut chains = chains()?;
    chains.retain(|chain| chain.hook == libc::NF_INET_FORWARD as u32);
    let of = |families: &[i32]| chains.iter().find(|chain| families.contains(&chain.family.into())).map(say);
    let old = |path: &str| {
        let names = fs::read_to_string(path).unwrap_or_default();
        names
            .lines()
            .any(|name| name == OLD_FILTER)
            .then(|| format!("iptables' table {OLD_FILTER}, by {path}"))
    };
    let [v4, v6] = [
        of(&[libc::NFPROTO_INET, libc::NFPROTO_IPV4]).or_else(|| old(OLD_TABLES[0])),
        of(&[libc::NFPROTO_INET, libc::NFPROTO_IPV6]).or_else(|| old(OLD_TABLES[1])),
    ];
    let shown = |who: &Option<String>, path| {
        let is_shown = fs::read_to_string(path).is_ok_and(|on| on.trim() == "1");
        who.clone().filter(|_| is_shown)
    };
    let bridged = of(&[libc::NFPROTO_BRIDGE]);
    let bridged = bridged.or_else(|| shown(&v4, BRIDGED_TOO[0])).or_else(|| shown(&v6, BRIDGED_TOO[1]));
    Ok(Forwarding { routed: v4.or(v6), bridged })
}

/// The first external filter; none if there is none.
///
/// # Errors
/// The kernel cannot say.
pub(crate) fn first() -> Result<Option<String>, NetlinkError> {
    if let Some(chain) = chains()?.into_iter().next() {
        return Ok(Some(say(&chain)));
    }
    let table = OLD_TABLES.into_iter().find(|path| fs::read(path).is_ok_and(|names| !names.is_empty()));
    if let Some(table) = table {
        return Ok(Some(format!("iptables, by {table}")));
    }
    Ok(has_ipsec_policies().then(|| "policies of IPsec".to_owned()))
}

/// Chains for forwarded packets that are not empty.
fn chains() -> Result<Vec<BaseChain>, NetlinkError> {
    let mut chains = base_chains()?;
    chains.retain(|chain| {
        let hook = chain.hook as i32;
        let is_seen = match chain.family.into() {
            libc::NFPROTO_ARP => false,
            // A container's packets to the node enter through the bridge; packets out of the node are routed.
            libc::NFPROTO_INET | libc::NFPROTO_IPV4 | libc::NFPROTO_IPV6 => {
                hook != libc::NF_INET_LOCAL_IN && hook != libc::NF_INET_LOCAL_OUT
            }
            _ => true,
        };
        is_seen && (chain.rules != 0 || chain.policy == Some(DROP)) && chain.table != OURS
    });
    Ok(chains)
}

fn say(chain: &BaseChain) -> String {
    format!("the chain {} of the table {}", chain.name, chain.table)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::nft::{self, MasqueradeRule, Rules};

    /// Who is found after these commands of `nft`, in a namespace that goes with its thread and has our own rules.
    fn found_after(commands: &[&str]) -> Option<String> {
        after(commands, || first().unwrap())
    }

    fn after<T: Send>(commands: &[&str], look: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let finder = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
                let rule = MasqueradeRule { network: "one".into(), prefix: "10.77.0.0/24".parse().unwrap() };
                drop(nft::replace(&Rules { masquerade: [rule].into(), ..Rules::default() }).unwrap());
                for command in commands {
                    assert!(Command::new("nft").arg(command).status().expect("nft runs").success());
                }
                look()
            });
            finder.join().unwrap()
        })
    }

    #[test]
    fn whoever_has_rules_for_forwarded_packets_is_found() {
        assert_eq!(found_after(&[]), None, "our own rules are nobody else's");
        let table = "add table ip admin";
        let empty = "add chain ip admin forward { type filter hook forward priority 0; }";
        assert_eq!(found_after(&[table, empty]), None, "it does nothing");
        let rule = "add rule ip admin forward tcp dport 25 drop";
        let found = found_after(&[table, empty, rule]);
        assert_eq!(found.as_deref(), Some("the chain forward of the table admin"));
        let policy = "add chain ip admin forward { type filter hook forward priority 0; policy drop; }";
        assert!(found_after(&[table, policy]).is_some());
        let input = "add chain ip admin input { type filter hook input priority 0; policy drop; }";
        assert_eq!(found_after(&[table, input]), None, "for the node only");
        let service = [
            "add chain ip admin nat { type nat hook prerouting priority -100; }",
            "add rule ip admin nat dnat to 10.0.0.1",
        ];
        assert!(found_after(&[table, service[0], service[1]]).is_some());
    }

    #[test]
    fn whoever_filters_forwarded_packets_is_told_from_whoever_does_anything_else() {
        let filtering = |family: &str, chain: &str, rule: &str| {
            let commands = [
                format!("add table {family} admin"),
                format!("add chain {family} admin some {{ {chain} }}"),
                format!("add rule {family} admin some {rule}"),
            ];
            after(&commands.each_ref().map(String::as_str), || {
                for path in BRIDGED_TOO {
                    // Where there is no br_netfilter, there is nothing to switch off.
                    drop(fs::write(path, "0"));
                }
                forwarding().unwrap()
            })
        };
        let who = Some("the chain some of the table admin".to_owned());
        let forward = "type filter hook forward priority 0;";
        for family in ["ip", "ip6", "inet"] {
            let found = filtering(family, forward, "tcp dport 25 drop");
            assert_eq!(found, Forwarding { routed: who.clone(), bridged: None }, "{family}");
        }
        let found = filtering("bridge", forward, "drop");
        assert_eq!(found, Forwarding { routed: None, bridged: who });
        let service = filtering("ip", "type nat hook prerouting priority -100;", "dnat to 10.0.0.1");
        assert_eq!(service, Forwarding::default());
    }
}
