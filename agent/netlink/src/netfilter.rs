//! Who else has rules in this namespace: chains of nf_tables, and policies of IPsec.

use netlink_packet_core::{DefaultNla, NLM_F_DUMP, Nla as _};
use netlink_packet_netfilter::nftables::{ChainAttribute, Hook};
use nix::errno::Errno;
use nix::libc;

use crate::attribute::{find, number, text, typed};
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::nfnetlink;
use crate::request::{Reply, Request};

const GET_CHAIN: u16 = (libc::NFNL_SUBSYS_NFTABLES as u16) << 8 | libc::NFT_MSG_GETCHAIN as u16;

// linux/netfilter/nf_tables.h; `libc` does not have it.
const NFTA_DEVICE_PREFIX: u16 = 2;

// The crates have no type for messages of IPsec: `XFRM_MSG_GETSPDINFO` and the attribute with its numbers (linux/xfrm.h).
const XFRM_MSG_GETSPDINFO: u16 = 0x25;
const XFRMA_SPD_INFO: u16 = 1;

/// A chain of nf_tables at a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseChain {
    /// `NFPROTO_INET`, `NFPROTO_BRIDGE`…
    pub family: u8,
    /// The hook's number in its family (`NF_INET_FORWARD`).
    pub hook: u32,
    /// Its place at the hook: chains with smaller ones come before.
    pub priority: i32,
    /// Its table's name.
    pub table: String,
    /// Its name.
    pub name: String,
    /// Rules that it has.
    pub rules: u32,
    /// What happens to packets that pass all of them (`NF_DROP`).
    pub policy: Option<u32>,
    /// `filter`, `route` or `nat`.
    pub kind: String,
    /// The interfaces at whose hook it is, of hooks that interfaces have. One that ends in `*` stands for all whose names begin so, also for those
    /// that come later (`NFTA_DEVICE_PREFIX`, Linux 6.18).
    pub devices: Vec<String>,
}

impl Reply for BaseChain {
    fn read(payload: &[u8]) -> Option<Self> {
        let (mut hook, mut priority, mut rules, mut policy, mut devices) = (None, 0, 0, None, Vec::new());
        let (mut table, mut name, mut kind) = (String::new(), String::new(), String::new());
        for attribute in typed(payload.get(nfnetlink::HEADER..)?) {
            match attribute {
                ChainAttribute::Table(text) => table = text,
                ChainAttribute::Name(text) => name = text,
                ChainAttribute::Use(count) => rules = count,
                ChainAttribute::Policy(verdict) => policy = Some(verdict),
                ChainAttribute::Type(text) => kind = text,
                ChainAttribute::Hook(parts) => {
                    for part in parts {
                        match part {
                            Hook::Number(number) => hook = Some(u32::from(number)),
                            // Signed, it travels as the number with the same bits.
                            Hook::Priority(number) => priority = number.cast_signed(),
                            Hook::NetDeviceName(name) => devices.push(name),
                            Hook::NetDevices(all) => devices.extend(all.iter().map(name_of)),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        // The kernel tells a single interface both ways.
        devices.dedup();
        Some(Self {
            family: *payload.first()?,
            hook: hook?,
            priority,
            table,
            name,
            rules,
            policy,
            kind,
            devices,
        })
    }
}

/// The name in `NFTA_DEVICE_NAME`, or the beginning of names in `NFTA_DEVICE_PREFIX`.
fn name_of(device: &DefaultNla) -> String {
    let mut bytes = vec![0; device.value_len()];
    device.emit_value(&mut bytes);
    let name = text(&bytes);
    if device.kind() == NFTA_DEVICE_PREFIX { name + "*" } else { name }
}

impl BaseChain {
    /// Whether it is at the hook of the interface of this name, if there is one.
    pub fn is_at(&self, ifname: &str) -> bool {
        self.devices.iter().any(|device| match device.strip_suffix('*') {
            Some(beginning) => ifname.starts_with(beginning),
            None => device == ifname,
        })
    }
}

/// Every chain at a hook; none on a kernel without nf_tables.
pub fn base_chains() -> Result<Vec<BaseChain>, NetlinkError> {
    let payload = nfnetlink::header(libc::NFPROTO_UNSPEC as u8);
    let request = Request::raw("list the chains of nf_tables", GET_CHAIN, NLM_F_DUMP, payload);
    match Connection::of(libc::NETLINK_NETFILTER)?.list(request) {
        Err(error) if error.errno() == Some(Errno::EINVAL) => Ok(Vec::new()),
        found => found,
    }
}

/// How many policies IPsec has in, out and forwarded.
struct Policies(u32);

impl Reply for Policies {
    fn read(payload: &[u8]) -> Option<Self> {
        let counts = find(payload.get(4..)?, XFRMA_SPD_INFO)?.chunks_exact(4).take(3).filter_map(number);
        Some(Self(counts.fold(0, u32::saturating_add)))
    }
}

/// Whether IPsec has policies. A kernel that cannot be asked has none.
pub fn has_ipsec_policies() -> bool {
    let request =
        Request::raw("count the policies of IPsec", XFRM_MSG_GETSPDINFO, 0, 0u32.to_ne_bytes().to_vec());
    let asked = Connection::of(libc::NETLINK_XFRM).and_then(|mut connection| connection.get(request));
    matches!(asked, Ok(Some(Policies(count))) if count != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::attribute;

    #[test]
    fn a_chain_of_a_prefix_is_at_every_interface_whose_name_begins_so() {
        let devices = [attribute(1, b"eth0\0"), attribute(NFTA_DEVICE_PREFIX, b"veth\0")].concat();
        let hook = [
            attribute(1, &0u32.to_be_bytes()),
            attribute(2, &(-80i32).to_be_bytes()),
            attribute(4, &devices),
        ];
        let named = [attribute(1, b"fw\0"), attribute(3, b"in\0"), attribute(4, &hook.concat())].concat();
        let chain =
            BaseChain::read(&[nfnetlink::header(libc::NFPROTO_NETDEV as u8), named].concat()).unwrap();
        assert_eq!(chain.priority, -80);
        assert_eq!(chain.devices, ["eth0", "veth*"]);
        let at = ["eth0", "eth01", "veth", "veth1a2b", "vet"].map(|ifname| chain.is_at(ifname));
        assert_eq!(at, [true, false, true, true, false]);
    }
}
