//! One neighbour that an interface knows.

use netlink_packet_route::AddressFamily;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourHeader, NeighbourMessage, NeighbourState,
};
use serde::{Deserialize, Serialize};

use super::wire;
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::neighbour::neighbours;

/// States in which an address is known.
const KNOWN: [NeighbourState; 5] = [
    NeighbourState::Permanent,
    NeighbourState::Reachable,
    NeighbourState::Stale,
    NeighbourState::Delay,
    NeighbourState::Probe,
];

/// Who has an address, by its Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct L3Neighbour {
    /// For a person.
    text: String,
    /// The message that makes it, for an interface of index 0.
    #[serde(with = "wire")]
    message: NeighbourMessage,
}

/// Every neighbour that an interface knows.
pub(super) fn all(connection: &mut Connection, index: u32) -> Result<Vec<L3Neighbour>, NetlinkError> {
    let found = connection.list(neighbours())?.into_iter();
    Ok(found.filter(|message| message.header.ifindex == index).filter_map(known).collect())
}

fn known(mut message: NeighbourMessage) -> Option<L3Neighbour> {
    let NeighbourHeader { family, state, flags, .. } = message.header;
    let is_of_ip = matches!(family, AddressFamily::Inet | AddressFamily::Inet6);
    if !is_of_ip || !KNOWN.iter().any(|known| u16::from(*known) & u16::from(state) != 0) {
        return None;
    }
    let is_permanent = u16::from(state) & u16::from(NeighbourState::Permanent) != 0;
    message.header = NeighbourHeader {
        family,
        // Whoever is not there for good is asked, in time, whether he still is.
        state: if is_permanent { NeighbourState::Permanent } else { NeighbourState::Stale },
        // The other flags are not what somebody said.
        flags: flags & NeighbourFlags::Router,
        ..NeighbourHeader::default()
    };
    message.attributes.retain(|attribute| {
        matches!(attribute, NeighbourAttribute::Destination(_) | NeighbourAttribute::LinkLayerAddress(_))
    });
    let has_station =
        message.attributes.iter().any(|one| matches!(one, NeighbourAttribute::LinkLayerAddress(_)));
    let text = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(ip)) => Some(ip.to_string()),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(ip)) => Some(ip.to_string()),
        _ => None,
    });
    Some(L3Neighbour { text: text.filter(|_| has_station)?, message })
}

impl L3Neighbour {
    /// Whether somebody has written it down, and it never goes by itself.
    pub(super) fn is_for_good(&self) -> bool {
        self.message.header.state == NeighbourState::Permanent
    }

    /// Whether it is the same one's.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// The message that has an interface know it.
    pub(super) fn on(&self, index: u32) -> NeighbourMessage {
        let mut message = self.message.clone();
        message.header.ifindex = index;
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{attribute, emitted};
    use crate::request::Reply as _;

    fn told(state: NeighbourState) -> Vec<u8> {
        let [low, high] = u16::from(state).to_ne_bytes();
        let mut payload = vec![2, 0, 0, 0, 7, 0, 0, 0, low, high, 0, 1];
        payload.extend(attribute(1, &[192, 0, 2, 1]));
        payload.extend(attribute(2, &[2, 0, 0, 0, 0, 1]));
        payload.extend(attribute(3, &[0; 16]));
        payload
    }

    fn read(payload: &[u8]) -> Option<L3Neighbour> {
        NeighbourMessage::read(payload).and_then(known)
    }

    #[test]
    fn one_that_was_heard_is_known_and_to_be_asked_again_and_one_for_good_stays_so() {
        let heard = read(&told(NeighbourState::Reachable)).unwrap();
        assert!(!heard.is_for_good());
        let bytes = emitted(&heard.on(9));
        assert_eq!(bytes[4..10], [9, 0, 0, 0, u16::from(NeighbourState::Stale) as u8, 0]);
        assert_eq!(bytes.len(), 12 + 8 + 12);
        assert!(read(&told(NeighbourState::Permanent)).unwrap().is_for_good());
        assert_eq!(read(&told(NeighbourState::Failed)), None);
        assert_eq!(read(&told(NeighbourState::Noarp)), None);
    }

    #[test]
    fn a_message_cut_anywhere_makes_no_panic() {
        let whole = told(NeighbourState::Stale);
        for length in 0..whole.len() {
            let _ = read(&whole[..length]).map(|neighbour| neighbour.on(1));
        }
    }
}
