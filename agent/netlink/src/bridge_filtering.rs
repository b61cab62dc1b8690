//! Which bridges show what they bridge to the rules for routed packets, by settings of their own. br_netfilter heeds them beside the
//! namespace's sysctls (`br_nf_pre_routing`, net/bridge/br_netfilter_hooks.c).

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoBridge, InfoKind, LinkAttribute, LinkInfo};
use nix::libc;
use rtnetlink::LinkUnspec;

use crate::attribute::{find, text, typed};
use crate::request::{Reply, Request};

/// Bytes of `struct ifinfomsg`.
const HEADER: usize = 16;

/// A bridge, and to which rules it shows what it bridges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilteringBridge {
    /// Its name.
    pub name: String,
    /// Whether to those of IPv4, of IPv6 and of ARP (`IFLA_BR_NF_CALL_IPTABLES` and the two behind it).
    pub shows: [bool; 3],
}

impl Reply for FilteringBridge {
    fn read(payload: &[u8]) -> Option<Self> {
        let attributes = payload.get(HEADER..)?;
        let info = find(attributes, libc::IFLA_LINKINFO)?;
        if text(find(info, libc::IFLA_INFO_KIND)?) != "bridge" {
            return None;
        }
        let said: Vec<InfoBridge> = typed(find(info, libc::IFLA_INFO_DATA)?).collect();
        use InfoBridge::{NfCallArpTables, NfCallIp6Tables, NfCallIpTables};
        let shows = [NfCallIpTables(true), NfCallIp6Tables(true), NfCallArpTables(true)];
        let name = text(find(attributes, libc::IFLA_IFNAME)?);
        Some(Self { name, shows: shows.map(|setting| said.contains(&setting)) })
    }
}

/// Asks for a bridge by its name; a link of another kind is none.
pub fn filtering_bridge(name: &str) -> Request<FilteringBridge> {
    let message = LinkUnspec::new_with_name(name).build();
    Request::new(format!("look up the bridge `{name}`"), RouteNetlinkMessage::GetLink(message), 0)
}

/// Asks for every bridge, with its statistics: for whoever names what to leave out, the kernel first adds up the size of what it would
/// say of every link (`rtnl_calcit`, net/core/rtnetlink.c), half a microsecond for each. A kernel that does not know the filter lists
/// every link, of which only bridges are read.
pub fn filtering_bridges() -> Request<FilteringBridge> {
    let message = LinkUnspec::new_with_index(0)
        .append_extra_attribute(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]));
    Request::dump("list the bridges", RouteNetlinkMessage::GetLink(message.build()))
}
