//! Who else in this namespace has a say in what the node forwards: tables of nf_tables, of iptables before it, and policies of
//! IPsec. What the programs masquerade passes all of them by.

use std::fs;

use nix::libc;

use super::socket::{self, NetlinkError, RequestSocket};

/// `NFT_MSG_GETCHAIN`, and its attributes (linux/netfilter/nf_tables.h).
const GET_CHAIN: u16 = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | libc::NFT_MSG_GETCHAIN as u16;
const TABLE: u16 = 1;
const NAME: u16 = 3;
const HOOK: u16 = 4;
const POLICY: u16 = 5;
const USE: u16 = 6;
const HOOK_NUMBER: u16 = 1;

/// Bytes of `struct nfgenmsg`, whose first is the family.
const NFGENMSG: usize = 4;

/// Our own table (`crate::nft`).
const OURS: &[u8] = b"shunt\0";

/// `NF_DROP`.
const DROP: u32 = 0;

/// Where the names of iptables' tables in use are.
const OLD_TABLES: [&str; 2] = ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"];

/// `XFRM_MSG_GETSPDINFO` and the attribute with its numbers (linux/xfrm.h): policies in, out and forwarded come first.
const GET_POLICIES: u16 = 0x25;
const NUMBERS: u16 = 1;

/// The first of them; none if there is nobody.
///
/// # Errors
/// The kernel cannot say.
pub fn first() -> Result<Option<String>, NetlinkError> {
    if let Some(chain) = chains()?.into_iter().next() {
        return Ok(Some(chain));
    }
    let table = OLD_TABLES.into_iter().find(|path| fs::read(path).is_ok_and(|names| !names.is_empty()));
    if let Some(table) = table {
        return Ok(Some(format!("iptables, by {table}")));
    }
    Ok(has_policies().then(|| "policies of IPsec".to_owned()))
}

/// Chains that see forwarded packets, and do anything.
fn chains() -> Result<Vec<String>, NetlinkError> {
    let mut socket = RequestSocket::open(libc::NETLINK_NETFILTER)?;
    match socket.dump(GET_CHAIN, &[libc::NFPROTO_UNSPEC as u8, libc::NFNETLINK_V0 as u8, 0, 0], chain) {
        // A kernel without nf_tables.
        Err(NetlinkError::Refused(error)) if error.raw_os_error() == Some(libc::EINVAL) => Ok(Vec::new()),
        found => found,
    }
}

fn chain(message: &[u8]) -> Option<String> {
    let (mut table, mut name, mut hook) = (Vec::new(), Vec::new(), None);
    let (mut rules, mut policy) = (0, None);
    socket::attributes(message.get(NFGENMSG..)?, |kind, value| match kind {
        TABLE => table = value.to_vec(),
        NAME => name = value.to_vec(),
        HOOK => socket::attributes(value, |kind, value| {
            if kind == HOOK_NUMBER {
                hook = number(value);
            }
        }),
        POLICY => policy = number(value),
        USE => rules = number(value).unwrap_or(u32::MAX),
        _ => {}
    });
    let family = i32::from(*message.first()?);
    let is_seen = match family {
        libc::NFPROTO_ARP => false,
        // What a container sends to the node comes in by the bridge; what leaves is routed.
        libc::NFPROTO_INET | libc::NFPROTO_IPV4 | libc::NFPROTO_IPV6 => {
            !matches!(hook?, hook if hook == libc::NF_INET_LOCAL_IN as u32 || hook == libc::NF_INET_LOCAL_OUT as u32)
        }
        _ => true,
    };
    hook?;
    let does_anything = rules != 0 || policy == Some(DROP);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned();
    (is_seen && does_anything && table != OURS)
        .then(|| format!("the chain {} of the table {}", text(&name), text(&table)))
}

/// nf_tables' numbers are in network order.
fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_be_bytes)
}

/// A kernel that cannot be asked has none.
fn has_policies() -> bool {
    let Ok(mut socket) = RequestSocket::open(libc::NETLINK_XFRM) else { return false };
    let mut policies = 0;
    let asked = socket.get(GET_POLICIES, &0u32.to_ne_bytes(), |answer| {
        socket::attributes(answer.get(4..).unwrap_or_default(), |kind, value| {
            if kind == NUMBERS {
                let counts = value.chunks_exact(4).take(3).filter_map(socket::number);
                policies = counts.fold(0, u32::saturating_add);
            }
        });
    });
    asked.is_ok() && policies != 0
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::nft::{self, MasqueradeRule, Rules};

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
        let service = [
            "add chain ip admin nat { type nat hook prerouting priority -100; }",
            "add rule ip admin nat dnat to 10.0.0.1",
        ];
        assert!(found_after(&[table, service[0], service[1]]).is_some());
    }
}
