//! Links of this network namespace.

use nix::libc;
use shunt_dataplane::wire::address::Mac;

use super::attribute::attribute;
use super::bridge::{self, BridgeMode, IFLA_INFO_SLAVE_DATA, PortFlags};
use super::socket::{self, NetlinkError, RequestSocket};

/// Bytes of `struct ifinfomsg`.
const IFINFOMSG: usize = 16;

/// The namespace of a veth's other end (linux/if_link.h).
const IFLA_LINK_NETNSID: u16 = 37;

/// A link of another namespace is asked for (linux/if_link.h; Linux 4.20 for those that one's own knows by a number).
const IFLA_TARGET_NETNSID: u16 = 46;

/// Leaves the statistics out of the answer (`RTEXT_FILTER_SKIP_STATS`, linux/rtnetlink.h).
const SKIP_STATS: u32 = 1 << 3;

/// Hardware types whose packets have no link-layer header (`dev_is_mac_header_xmit`, include/linux/if_arp.h): PPP, IPv4 and IPv6 tunnels,
/// SIT, GRE over either, mobile modems, and whatever has no type (tun, WireGuard). Those that carry Ethernet frames have Ethernet's.
const BARE: [u16; 8] = [
    libc::ARPHRD_PPP,
    libc::ARPHRD_TUNNEL,
    libc::ARPHRD_TUNNEL6,
    libc::ARPHRD_SIT,
    libc::ARPHRD_IPGRE,
    823, // ARPHRD_IP6GRE
    519, // ARPHRD_RAWIP
    libc::ARPHRD_NONE,
];

/// What the agent wants to know of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its ifindex; the kernel uses it again once the link is gone.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its Ethernet address, if it has one.
    pub mac: Option<Mac>,
    /// Whether its packets have no link-layer header at all.
    pub bare: bool,
    /// Its MTU in bytes, without the Ethernet header.
    pub mtu: u32,
    /// The bridge that it is a port of.
    pub master: Option<u32>,
    /// The other end of a veth, by its index in its own namespace.
    pub peer: Option<u32>,
    /// The namespace of the other end by its number in this one (`IFLA_LINK_NETNSID`); none if that is the same.
    pub peer_netnsid: Option<i32>,
    /// Carrier (`IFF_LOWER_UP`). A veth end has it while both ends are up.
    pub carrier: bool,
    /// Whether packets wait in a queueing discipline on their way out; a veth has none of its own.
    pub queued: bool,
    /// How it is a port of its bridge.
    pub port_flags: PortFlags,
    /// Whether it is set up (`IFF_UP`).
    pub up: bool,
    /// Whether it was set to take every packet (`IFF_PROMISC`).
    pub promiscuous: bool,
    /// What its maker calls it.
    pub alias: Option<String>,
    /// Whether its bridge keeps it from forwarding (listening, learning, blocking).
    pub blocked: bool,
    /// How it bridges, if it is a bridge.
    pub bridging: BridgeMode,
    /// Whether what it sends gets out (`IFF_RUNNING`): that comes a moment after the carrier.
    pub operational: bool,
}

impl Link {
    /// A link of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self {
            index: 0,
            name: name.to_owned(),
            mac: None,
            bare: false,
            mtu: 0,
            master: None,
            peer: None,
            peer_netnsid: None,
            carrier: false,
            queued: false,
            port_flags: PortFlags::default(),
            up: false,
            promiscuous: false,
            alias: None,
            blocked: false,
            bridging: BridgeMode::default(),
            operational: false,
        }
    }
}

/// Reads the payload of `RTM_NEWLINK` or `RTM_DELLINK`. None for another family's message (the bridge speaks of its
/// ports with the same types) and for one that is too short.
pub fn parse(payload: &[u8]) -> Option<Link> {
    let (header, rest) = payload.split_first_chunk::<IFINFOMSG>()?;
    let [family, _, t0, t1, i0, i1, i2, i3, f0, f1, f2, f3, ..] = *header;
    if i32::from(family) != libc::AF_UNSPEC {
        return None;
    }
    let flags = u32::from_ne_bytes([f0, f1, f2, f3]);
    let mut link = Link {
        index: u32::from_ne_bytes([i0, i1, i2, i3]),
        bare: BARE.contains(&u16::from_ne_bytes([t0, t1])),
        carrier: flags & libc::IFF_LOWER_UP as u32 != 0,
        up: flags & libc::IFF_UP as u32 != 0,
        operational: flags & libc::IFF_RUNNING as u32 != 0,
        promiscuous: flags & libc::IFF_PROMISC as u32 != 0,
        ..Link::named("")
    };
    socket::attributes(rest, |kind, value| match kind {
        libc::IFLA_IFNAME => link.name = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
        libc::IFLA_ADDRESS => link.mac = <[u8; 6]>::try_from(value).ok().map(Mac::new),
        libc::IFLA_MTU => link.mtu = socket::number(value).unwrap_or_default(),
        // A link has "noop" until it is first up, as a container's host end often is when it is attached.
        libc::IFLA_QDISC => link.queued = !matches!(value, b"noqueue\0" | b"noop\0"),
        libc::IFLA_LINK => link.peer = socket::number(value).filter(|index| *index != 0),
        IFLA_LINK_NETNSID => link.peer_netnsid = <[u8; 4]>::try_from(value).ok().map(i32::from_ne_bytes),
        libc::IFLA_IFALIAS => {
            link.alias = Some(String::from_utf8_lossy(value).trim_end_matches('\0').to_owned());
        }
        libc::IFLA_LINKINFO => socket::attributes(value, |kind, value| match kind {
            IFLA_INFO_SLAVE_DATA => {
                (link.port_flags, link.blocked) = (PortFlags::parse(value), bridge::is_blocked(value));
            }
            libc::IFLA_INFO_DATA => link.bridging = BridgeMode::parse(value),
            _ => {}
        }),
        libc::IFLA_MASTER => link.master = socket::number(value).filter(|index| *index != 0),
        _ => {}
    });
    Some(link)
}

/// The port of which a bridge speaks in the payload of `RTM_NEWLINK`: it was told what kind of port it is, or has changed its state.
/// That is no link's message, and is the only one about it.
pub fn parse_port(payload: &[u8]) -> Option<u32> {
    let (header, _) = payload.split_first_chunk::<IFINFOMSG>()?;
    let [family, _, _, _, index @ ..] = *header;
    (i32::from(family) == libc::AF_BRIDGE).then(|| socket::number(&index)).flatten()
}

/// The link with this index; none if there is none.
///
/// # Errors
/// Netlink's, other than that there is no such link.
pub fn by_index(socket: &mut RequestSocket, index: u32) -> Result<Option<Link>, NetlinkError> {
    find(socket, &request(index), parse)
}

/// The link of this name; none if there is none.
///
/// # Errors
/// Netlink's, other than that there is no such link.
pub fn by_name(socket: &mut RequestSocket, name: &str) -> Result<Option<Link>, NetlinkError> {
    find(socket, &request_named(name), parse)
}

/// Sets a veth's end up; answers whether both ends are operational. To ask for both in the same breath has the kernel look after their
/// carriers at once (`linkwatch_sync_dev`, Linux 6.8). A peer that cannot be asked for counts as its own end does.
///
/// # Errors
/// Netlink's.
pub fn set_up(socket: &mut RequestSocket, host: &Link) -> Result<bool, NetlinkError> {
    let mut up = [0; IFINFOMSG];
    up[4..8].copy_from_slice(&host.index.to_ne_bytes());
    for flags in [8..12, 12..16] {
        up[flags].copy_from_slice(&(libc::IFF_UP as u32).to_ne_bytes());
    }
    let there =
        host.peer_netnsid.map(|id| attribute(IFLA_TARGET_NETNSID, &id.to_ne_bytes())).unwrap_or_default();
    let peer = [&request(host.peer.unwrap_or(host.index))[..], &there].concat();
    let questions = [
        (libc::RTM_SETLINK, &up[..]),
        (libc::RTM_GETLINK, &request(host.index)[..]),
        (libc::RTM_GETLINK, &peer[..]),
    ];
    let mut operational = [true; 3];
    let [set, asked, _may_be_nowhere] = socket.get_in_one_piece(questions, |place, payload| {
        operational[place] = parse(payload).is_none_or(|link| link.operational && link.carrier);
    })?;
    set.and(asked)?;
    Ok(operational == [true; 3])
}

/// Deletes the link with this index, if it has this name; it may be gone already. The index alone could mean a link
/// that was made since.
///
/// # Errors
/// Netlink's.
pub fn delete(socket: &mut RequestSocket, index: u32, name: &str) -> Result<(), NetlinkError> {
    if by_index(socket, index)?.is_none_or(|link| link.name != name) {
        return Ok(());
    }
    match socket.get(libc::RTM_DELLINK, &request(index)[..IFINFOMSG], |_| {}) {
        Err(error) if error.is_absent() => Ok(()),
        other => other,
    }
}

/// Every link.
///
/// # Errors
/// Netlink's.
pub fn all(socket: &mut RequestSocket) -> Result<Vec<Link>, NetlinkError> {
    socket.dump(libc::RTM_GETLINK, &request(0), parse)
}

/// What a link is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its ifindex.
    pub index: u32,
    /// What it is a port or member of.
    pub master: Option<u32>,
    /// `veth`, `bond` …; empty for hardware.
    pub kind: String,
}

/// What the link of this name is made of; none if there is none.
///
/// # Errors
/// Netlink's, other than that there is no such link.
pub fn kind_by_name(socket: &mut RequestSocket, name: &str) -> Result<Option<Kind>, NetlinkError> {
    find(socket, &request_named(name), parse_kind)
}

/// What the link with this index is made of; none if there is none.
///
/// # Errors
/// Netlink's, other than that there is no such link.
pub fn kind(socket: &mut RequestSocket, index: u32) -> Result<Option<Kind>, NetlinkError> {
    find(socket, &request(index), parse_kind)
}

/// What every link is made of.
///
/// # Errors
/// Netlink's.
pub fn kinds(socket: &mut RequestSocket) -> Result<Vec<Kind>, NetlinkError> {
    socket.dump(libc::RTM_GETLINK, &request(0), parse_kind)
}

/// What every port of a bridge is made of.
///
/// # Errors
/// Netlink's.
pub fn ports(socket: &mut RequestSocket, bridge: u32) -> Result<Vec<Kind>, NetlinkError> {
    let payload = [&request(0)[..], &attribute(libc::IFLA_MASTER, &bridge.to_ne_bytes())].concat();
    // A kernel that takes no notice of the attribute tells of every link.
    let kinds = socket.dump(libc::RTM_GETLINK, &payload, parse_kind)?;
    Ok(kinds.into_iter().filter(|kind| kind.master == Some(bridge)).collect())
}

fn parse_kind(payload: &[u8]) -> Option<Kind> {
    let Link { index, master, .. } = parse(payload)?;
    let mut kind = String::new();
    socket::attributes(payload.get(IFINFOMSG..)?, |attribute, value| {
        if attribute == libc::IFLA_LINKINFO {
            socket::attributes(value, |attribute, value| {
                if attribute == libc::IFLA_INFO_KIND {
                    kind = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
                }
            });
        }
    });
    Some(Kind { index, master, kind })
}

/// The one link that is asked for, as `read` has it; none if there is none.
fn find<T>(
    socket: &mut RequestSocket,
    request: &[u8],
    read: impl Fn(&[u8]) -> Option<T>,
) -> Result<Option<T>, NetlinkError> {
    let mut found = None;
    match socket.get(libc::RTM_GETLINK, request, |payload| found = read(payload)) {
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
        Ok(()) => Ok(found),
    }
}

fn request_named(name: &str) -> Vec<u8> {
    [&request(0)[..], &attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat())].concat()
}

/// `struct ifinfomsg` with an index and the attribute `IFLA_EXT_MASK`.
pub(super) fn request(index: u32) -> [u8; IFINFOMSG + 8] {
    let mut payload = [0; IFINFOMSG + 8];
    payload[4..8].copy_from_slice(&index.to_ne_bytes());
    payload[16..18].copy_from_slice(&8u16.to_ne_bytes());
    payload[18..20].copy_from_slice(&libc::IFLA_EXT_MASK.to_ne_bytes());
    payload[20..24].copy_from_slice(&SKIP_STATS.to_ne_bytes());
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback(family: u8) -> Vec<u8> {
        let mut payload = vec![family, 0, 4, 3, 1, 0, 0, 0, 0x49, 0, 1, 0, 0, 0, 0, 0];
        payload.extend([7, 0, 3, 0, b'l', b'o', 0, 0]);
        payload.extend([8, 0, 4, 0, 0, 0, 1, 0]);
        payload
    }

    #[test]
    fn a_links_name_mtu_and_carrier_are_read() {
        let link = parse(&loopback(0)).unwrap();
        assert_eq!((link.index, link.name.as_str(), link.mtu, link.carrier), (1, "lo", 65536, true));
    }

    #[test]
    fn a_link_without_a_link_layer_is_told_by_its_type() {
        // Ethernet, the loopback, InfiniBand, tun, IP in IP, GRE over IPv6.
        for (kind, bare) in
            [(1u16, false), (772, false), (32, false), (0xfffe, true), (768, true), (823, true)]
        {
            let mut payload = loopback(0);
            payload[2..4].copy_from_slice(&kind.to_ne_bytes());
            assert_eq!(parse(&payload).unwrap().bare, bare, "{kind}");
        }
    }

    #[test]
    fn a_link_that_was_never_up_has_no_queue() {
        for (qdisc, queued) in [(*b"noop\0\0\0\0", false), (*b"tbf\0\0\0\0\0", true)] {
            let mut payload = loopback(0);
            let length = 4 + qdisc.iter().position(|byte| *byte == 0).unwrap() + 1;
            payload.extend([length as u8, 0, libc::IFLA_QDISC as u8, 0]);
            payload.extend(qdisc);
            assert_eq!(parse(&payload).unwrap().queued, queued, "{qdisc:?}");
        }
    }

    #[test]
    fn the_bridges_messages_about_its_ports_are_not_links() {
        let payload = loopback(libc::AF_BRIDGE as u8);
        assert_eq!((parse(&payload), parse_port(&payload)), (None, Some(1)));
        assert_eq!(parse_port(&loopback(0)), None);
    }

    #[test]
    fn a_message_cut_anywhere_is_read_as_far_as_it_goes() {
        let whole = loopback(0);
        for length in 0..whole.len() {
            let _ = parse(&whole[..length]).map(|link| assert_eq!(link.index, 1));
        }
    }
}
