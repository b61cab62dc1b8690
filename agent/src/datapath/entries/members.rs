//! Entries of VLAN membership, and the list of ports to which a bridge's programs flood: `TAGGED` and `MEMBERS`.

use aya::maps::MapError;
use shunt_dataplane::abi::PortKey;
use shunt_dataplane::abi::vlan::{MAX_BRIDGE_PORTS, Member, MemberKey};

use crate::datapath::maps::{insert, lookup, remove};
use crate::datapath::{Datapath, DatapathError, encode, in_map};
use crate::registry::Attachment;

impl Datapath {
    /// Adds a port in VLANs to its bridge's flood list; does nothing for other ports.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_membership(&mut self, attachment: &Attachment) -> Result<(), DatapathError> {
        if !attachment.is_flooded_to() {
            return Ok(());
        }
        let (bridge, ifindex) = (attachment.port.bridge.index, attachment.port.host.index);
        if let Some(tagged) = encode::tagged_vlans(attachment) {
            insert(&mut self.maps.tagged, PortKey { ifindex }, tagged).map_err(in_map("TAGGED"))?;
        }
        self.join(bridge, ifindex)
    }

    /// Adds a port to its bridge's flood list.
    pub fn join(&mut self, bridge: u32, ifindex: u32) -> Result<(), DatapathError> {
        let members = self.members(bridge).map_err(in_map("MEMBERS"))?;
        if members.contains(&ifindex) {
            return Ok(());
        }
        let hole = members.iter().position(|member| *member == 0).unwrap_or(members.len());
        let key = MemberKey { bridge, position: hole as u32 };
        insert(&mut self.maps.members, key, Member { ifindex }).map_err(in_map("MEMBERS"))
    }

    /// Takes that back. Goes on past errors.
    pub fn erase_membership(&mut self, bridge: u32, ifindex: u32) -> Vec<DatapathError> {
        let left = self.leave(bridge, ifindex).map_err(in_map("MEMBERS"));
        let tagged = remove(&mut self.maps.tagged, &PortKey { ifindex }).map_err(in_map("TAGGED"));
        [left.err(), tagged.err()].into_iter().flatten().collect()
    }

    /// Removes every member that is not `known` on its bridge.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sweep_members(&mut self, known: impl Fn(u32, u32) -> bool) -> Result<(), DatapathError> {
        let entries: Vec<(MemberKey, Member)> =
            self.maps.members.iter().collect::<Result<_, _>>().map_err(in_map("MEMBERS"))?;
        for (key, member) in entries.iter().filter(|(key, member)| !known(key.bridge, member.ifindex)) {
            self.leave(key.bridge, member.ifindex).map_err(in_map("MEMBERS"))?;
        }
        let ports: Vec<PortKey> =
            self.maps.tagged.keys().collect::<Result<_, _>>().map_err(in_map("TAGGED"))?;
        let is_member = |port: &PortKey| {
            entries
                .iter()
                .any(|(key, member)| member.ifindex == port.ifindex && known(key.bridge, port.ifindex))
        };
        for port in ports.iter().filter(|port| !is_member(port)) {
            remove(&mut self.maps.tagged, port).map_err(in_map("TAGGED"))?;
        }
        Ok(())
    }

    /// A bridge's members by position; 0 for an empty position.
    pub fn members(&self, bridge: u32) -> Result<Vec<u32>, MapError> {
        let mut members = Vec::new();
        for position in 0..MAX_BRIDGE_PORTS {
            match lookup(&self.maps.members, &MemberKey { bridge, position })? {
                Some(member) => members.push(member.ifindex),
                None => break,
            }
        }
        Ok(members)
    }

    /// Leaves an empty position, so that a concurrent reader does not stop early; empty positions at the end
    /// are removed.
    pub fn leave(&mut self, bridge: u32, ifindex: u32) -> Result<(), MapError> {
        let mut members = self.members(bridge)?;
        for (position, member) in (0..).zip(&mut members).filter(|(_, member)| **member == ifindex) {
            *member = 0;
            insert(&mut self.maps.members, MemberKey { bridge, position }, Member::default())?;
        }
        while members.pop_if(|last| *last == 0).is_some() {
            remove(&mut self.maps.members, &MemberKey { bridge, position: members.len() as u32 })?;
        }
        Ok(())
    }
}
