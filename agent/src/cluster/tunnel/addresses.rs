//! This node's addresses on the VXLAN device: the first of each of its pods' prefixes, which no pod has. What the node itself sends to
//! pods comes from them, so that the answer takes the same way back.

use std::net::IpAddr;

use ipnet::IpNet;
use shunt_netlink::address::{Address, add_gateway, addresses, delete_address};
use shunt_netlink::{AddressFamily, Connection, NetlinkError, unless};

/// Has the device have exactly these, and what others have that is no single address.
///
/// # Errors
/// Netlink's.
pub(super) fn keep(connection: &mut Connection, index: u32, own: &[IpNet]) -> Result<(), NetlinkError> {
    let wanted: Vec<IpNet> = own.iter().map(|prefix| IpNet::from(prefix.network())).collect();
    let mut known: Vec<Address> = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        known.extend(connection.list(addresses(index, family))?.into_iter().filter(|one| one.index == index));
    }
    for missing in wanted.iter().filter(|prefix| !known.iter().any(|one| one.prefix == **prefix)) {
        unless(connection.run(add_gateway(index, *missing)), NetlinkError::is_existing)?;
    }
    // The last address of IPv4 would take neighbours and routes with it (`fib_disable_ip`, net/ipv4/fib_frontend.c).
    for stale in known.iter().filter(|one| is_single(one) && !wanted.contains(&one.prefix)) {
        unless(connection.run(delete_address(index, stale.prefix)), NetlinkError::is_no_address)?;
    }
    Ok(())
}

fn is_single(address: &Address) -> bool {
    let bits = match address.ip() {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    };
    address.prefix.prefix_len() == bits
}
