//! External filters of the namespace: tables of nf_tables, tables of legacy iptables, and policies of IPsec. Masquerading and host ports in
//! the fast path bypass all of them.

use std::fs;

use nix::libc;
use shunt_netlink::NetlinkError;
use shunt_netlink::netfilter::{BaseChain, base_chains, has_ipsec_policies};

use crate::nft;

/// `NF_DROP`.
const DROP: u32 = 0;

/// Where the names of iptables' tables in use are, of IPv4 and of IPv6.
pub(super) const OLD_TABLES: [&str; 2] = ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"];

/// The names of xtables' tables in use, a line each. `/proc/net` is the network namespace of the process's first thread; the agent's
/// may have another.
pub(super) fn table_names(path: &str) -> String {
    fs::read_to_string(path.replace("/proc/net/", "/proc/thread-self/net/")).unwrap_or_default()
}

/// Whether legacy iptables has this table in use, of either family.
pub(super) fn is_old_table_used(table: &str) -> bool {
    OLD_TABLES.into_iter().any(|path| table_names(path).lines().any(|name| name == table))
}

/// The first external filter; none if there is none.
///
/// # Errors
/// The kernel cannot say.
pub(crate) fn first() -> Result<Option<String>, NetlinkError> {
    if let Some(chain) = chains()?.into_iter().next() {
        return Ok(Some(say(&chain)));
    }
    let table = OLD_TABLES.into_iter().find(|path| !table_names(path).is_empty());
    if let Some(table) = table {
        return Ok(Some(format!("iptables, by {table}")));
    }
    Ok(has_ipsec_policies().then(|| "policies of IPsec".to_owned()))
}

/// Chains for forwarded packets that are not empty.
pub(crate) fn chains() -> Result<Vec<BaseChain>, NetlinkError> {
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
        is_seen && (chain.rules != 0 || chain.policy == Some(DROP)) && !nft::is_own(chain)
    });
    Ok(chains)
}

/// A chain, for a person.
pub(super) fn say(chain: &BaseChain) -> String {
    format!("the chain {} of the table {}", chain.name, chain.table)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::nft::{MasqueradeRule, Rules};

    /// Who is found after these commands of `nft`, in a namespace that goes with its thread and has our own rules.
    fn found_after(commands: &[&str]) -> Option<String> {
        std::thread::scope(|scope| {
            let finder = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
                let rule = MasqueradeRule { network: "one".into(), prefix: "10.77.0.0/24".parse().unwrap() };
                drop(nft::replace(&Rules { masquerade: [rule].into(), ..Rules::default() }).unwrap());
                for command in commands {
                    assert!(Command::new("nft").arg(command).status().expect("nft runs").success());
                }
                first().unwrap()
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
        for family in ["bridge", "ip"] {
            let ours = format!(
                "table {family} shunt {{ chain f {{ type filter hook forward priority 0; drop; }}; }}"
            );
            assert!(found_after(&[&ours]).is_some(), "{family}: a name is no proof");
        }
        let beside = "add chain inet shunt f { type filter hook forward priority 0; policy drop; }";
        assert!(found_after(&[beside]).is_some(), "nobody else's is known in our own table");
        let service = [
            "add chain ip admin nat { type nat hook prerouting priority -100; }",
            "add rule ip admin nat dnat to 10.0.0.1",
        ];
        assert!(found_after(&[table, service[0], service[1]]).is_some());
    }
}
