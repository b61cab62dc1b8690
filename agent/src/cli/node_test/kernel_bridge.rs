//! What is compared with: two namespaces on a bridge of the kernel's, in a third one, without shunt and without rules.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::path::Path;

use ipnet::IpNet;
use shunt_netlink::Connection;
use shunt_netlink::address::add_gateway;
use shunt_netlink::link::{Link, Selector, Veth, VethEnd, add_bridge, add_veth, link, set_link_up};

use super::namespace::Namespace;

const BRIDGE: &str = "bridge";

/// The name of the interface in each namespace.
const IFNAME: &str = "eth0";

/// The ends' addresses, by whether they are IPv6; namespaces of their own have no other.
const ADDRESSES: [[&str; 2]; 2] =
    [["198.18.83.1/24", "198.18.83.2/24"], ["fd8a:51c7:3e02:83::1/64", "fd8a:51c7:3e02:83::2/64"]];

#[derive(Debug)]
pub(super) struct KernelBridge {
    /// The two ends, with their addresses.
    pub(super) ends: [(Namespace, IpAddr); 2],
    _bridge: Namespace,
}

impl KernelBridge {
    /// Makes it, with addresses of one family. It goes with its namespaces.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn make(directory: &Path, is_ipv6: bool) -> io::Result<Self> {
        let within = Namespace::make(directory, "kernel")?;
        let mut connection = open(&within)?;
        let like = Link { name: BRIDGE.to_owned(), up: true, ..Link::default() };
        connection.run(add_bridge(&like)).map_err(io::Error::other)?;
        let found = connection.get(link(Selector::Name(BRIDGE))).map_err(io::Error::other)?;
        let bridge = found.ok_or(io::ErrorKind::NotFound)?.index;
        let mut join = |name: &str, address: &str| {
            let address: IpNet = address.parse().map_err(io::Error::other)?;
            let end = Namespace::make(directory, name)?;
            connect(&mut connection, bridge, name, &end, address)?;
            Ok::<_, io::Error>((end, address.addr()))
        };
        let [left, right] = ADDRESSES[usize::from(is_ipv6)];
        let ends = [join("kernel-left", left)?, join("kernel-right", right)?];
        Ok(Self { ends, _bridge: within })
    }
}

fn open(namespace: &Namespace) -> io::Result<Connection> {
    namespace.enter(|| Connection::open().map_err(io::Error::other))
}

/// Makes a namespace a station of the bridge.
fn connect(
    connection: &mut Connection,
    bridge: u32,
    name: &str,
    end: &Namespace,
    address: IpNet,
) -> io::Result<()> {
    let failed = io::Error::other::<shunt_netlink::NetlinkError>;
    let namespace = end.file().map(std::fs::File::as_fd);
    let veth = Veth {
        end: VethEnd { name, master: Some(bridge), ..VethEnd::default() },
        peer: VethEnd { name: IFNAME, namespace, ..VethEnd::default() },
        mtu: None,
    };
    connection.get(add_veth(&veth)).map_err(failed)?;
    connection.run(set_link_up(Selector::Name(name))).map_err(failed)?;
    let mut there = open(end)?;
    there.run(set_link_up(Selector::Name(IFNAME))).map_err(failed)?;
    let own = there.get(link(Selector::Name(IFNAME))).map_err(failed)?.ok_or(io::ErrorKind::NotFound)?;
    // Nobody else can have it: no duplicate is looked for.
    there.run(add_gateway(own.index, address)).map_err(failed)
}
