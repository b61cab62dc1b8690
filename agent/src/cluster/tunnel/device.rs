//! The VXLAN device: one of this node's, told by its alias. A device of another alias is somebody else's, whatever its name.

use std::hash::{BuildHasher as _, RandomState};

use shunt_netlink::link::{
    Link, Selector, Vxlan, VxlanLink, add_vxlan, link, set_alias, set_link_up, set_mac, set_mtu,
    set_no_link_local, vxlan_link,
};
use shunt_netlink::{Connection, NetlinkError};

use crate::cluster::removal::{ALIAS, is_device, remove_device};

/// Its index is chosen, so that the mark is put on this device and on no other; from a range that the kernel does not come to by itself.
const FIRST_INDEX: u32 = 1 << 25;
const INDEXES: u64 = 1 << 24;

/// So often an index is sought that is free.
const TRIES: usize = 8;

/// What the device is to be.
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    pub(super) vxlan: Vxlan,
    pub(super) mac: [u8; 6],
    pub(super) mtu: u32,
}

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeviceError {
    #[error(
        "the interface {0} is somebody else's (its alias is not {ALIAS}), and no packet is led to nodes beyond the link: rename it, or \
         set another device in [cluster.vxlan]"
    )]
    Foreign(String),
    #[error(
        "{0}; no packet is led to nodes beyond the link. If another VXLAN device has this id and port (`ip -d link`), or a program the \
         port, take it away or set others in [cluster.vxlan], on all nodes"
    )]
    Kernel(#[from] NetlinkError),
    #[error("no index for the VXLAN device is free")]
    NoIndex,
}

/// Has the device be there, up, and exactly so; its index. What cannot be changed is made anew.
pub(super) fn keep(connection: &mut Connection, wanted: &Wanted<'_>) -> Result<u32, DeviceError> {
    let found = match connection.get(vxlan_link(wanted.name))? {
        Some(found) if !is_device(&found.link) => return Err(DeviceError::Foreign(found.link.name)),
        Some(found) if found.vxlan == Some(wanted.vxlan) => Some(found),
        Some(VxlanLink { link, .. }) => {
            remove_device(connection, &link)?;
            None
        }
        None => None,
    };
    match found {
        Some(VxlanLink { link, .. }) => repair(connection, &link, wanted),
        None => make(connection, wanted),
    }
}

fn repair(connection: &mut Connection, found: &Link, wanted: &Wanted<'_>) -> Result<u32, DeviceError> {
    let index = found.index;
    let changes = [
        (found.mtu != wanted.mtu).then(|| set_mtu(index, wanted.mtu)),
        (found.mac != Some(wanted.mac)).then(|| set_mac(index, wanted.mac)),
        (!found.up).then(|| set_link_up(Selector::Index(index))),
    ];
    for change in changes.into_iter().flatten() {
        connection.run(change)?;
        tracing::info!(device = wanted.name, "the VXLAN device was not as it should be, and is again");
    }
    Ok(index)
}

fn make(connection: &mut Connection, wanted: &Wanted<'_>) -> Result<u32, DeviceError> {
    let like = Link { mtu: wanted.mtu, mac: Some(wanted.mac), ..Link::named(wanted.name) };
    for attempt in 0..TRIES {
        let chosen = RandomState::new().hash_one(attempt) % INDEXES;
        let index = FIRST_INDEX + u32::try_from(chosen).unwrap_or_default();
        if connection.get(link(Selector::Index(index)))?.is_some() {
            continue;
        }
        // In one piece: an agent that is killed leaves none that is nobody's, or makes itself an address when it comes up.
        let batch = vec![
            add_vxlan(index, &like, &wanted.vxlan),
            set_alias(Selector::Index(index), ALIAS),
            set_no_link_local(index),
        ];
        let mut answers = connection.batch(batch)?;
        // A kernel without IPv6 has nothing to be kept from.
        let _without_ipv6 = answers.pop();
        answers.into_iter().collect::<Result<Vec<_>, _>>()?;
        connection.run(set_link_up(Selector::Index(index)))?;
        tracing::info!(device = wanted.name, id = wanted.vxlan.id, port = wanted.vxlan.port,
            local = %wanted.vxlan.local, mtu = wanted.mtu, "VXLAN device made");
        return Ok(index);
    }
    Err(DeviceError::NoIndex)
}

/// Removes the device, if it is the agent's.
pub(super) fn remove(connection: &mut Connection, name: &str) -> Result<(), NetlinkError> {
    match connection.get(vxlan_link(name))? {
        Some(VxlanLink { link, .. }) if is_device(&link) => remove_device(connection, &link),
        _ => Ok(()),
    }
}
