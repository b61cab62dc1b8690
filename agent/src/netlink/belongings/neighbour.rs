//! One neighbour that an interface knows, as a message (`struct ndmsg`, linux/neighbour.h).

use nix::libc;
use serde::{Deserialize, Serialize};

use super::super::attribute::attribute;
use super::super::socket::{self, NetlinkError, RequestSocket};
use super::address::ip;
use super::octets;

/// Bytes of `struct ndmsg`.
const NDMSG: usize = 12;

/// States in which an address is known.
const KNOWN: u16 =
    libc::NUD_PERMANENT | libc::NUD_REACHABLE | libc::NUD_STALE | libc::NUD_DELAY | libc::NUD_PROBE;

/// Flags that say what others are: `NTF_ROUTER`.
const SAID: u8 = 1 << 7;

/// Who has an address, by its Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// For a person.
    text: String,
    /// The message that makes it, for an interface of index 0.
    #[serde(with = "octets")]
    message: Vec<u8>,
}

/// Every neighbour that an interface knows.
pub(super) fn all(socket: &mut RequestSocket, index: u32) -> Result<Vec<Neighbour>, NetlinkError> {
    socket.dump(libc::RTM_GETNEIGH, &[0; NDMSG], |payload| {
        let (header, _) = payload.split_first_chunk::<NDMSG>()?;
        (header[4..8] == index.to_ne_bytes()).then(|| parse(payload)).flatten()
    })
}

fn parse(payload: &[u8]) -> Option<Neighbour> {
    let (header, rest) = payload.split_first_chunk::<NDMSG>()?;
    let [family, _, _, _, _, _, _, _, s0, s1, flags, _] = *header;
    let state = u16::from_ne_bytes([s0, s1]) & KNOWN;
    if !matches!(i32::from(family), libc::AF_INET | libc::AF_INET6) || state == 0 {
        return None;
    }
    // Whoever is not there for good is asked, in time, whether he still is.
    let state = if state & libc::NUD_PERMANENT != 0 { libc::NUD_PERMANENT } else { libc::NUD_STALE };
    let [low, high] = state.to_ne_bytes();
    let mut message = vec![family, 0, 0, 0, 0, 0, 0, 0, low, high, flags & SAID, 0];
    let (mut address, mut station) = (None, false);
    socket::attributes(rest, |kind, value| match kind {
        libc::NDA_DST => {
            address = ip(value);
            message.extend(attribute(kind, value));
        }
        libc::NDA_LLADDR => {
            station = true;
            message.extend(attribute(kind, value));
        }
        _ => {}
    });
    let text = address.filter(|_| station)?.to_string();
    Some(Neighbour { text, message })
}

impl Neighbour {
    /// Whether somebody has written it down, and it never goes by itself.
    pub(super) fn is_for_good(&self) -> bool {
        self.message.get(8..10) == Some(&libc::NUD_PERMANENT.to_ne_bytes())
    }

    /// Whether it is the same one's.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// The message that has an interface know it.
    pub(super) fn on(&self, index: u32) -> Vec<u8> {
        let mut message = self.message.clone();
        if let Some(place) = message.get_mut(4..8) {
            place.copy_from_slice(&index.to_ne_bytes());
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(state: u16) -> Vec<u8> {
        let [low, high] = state.to_ne_bytes();
        let mut payload = vec![2, 0, 0, 0, 7, 0, 0, 0, low, high, 0, 1];
        payload.extend(attribute(libc::NDA_DST, &[192, 0, 2, 1]));
        payload.extend(attribute(libc::NDA_LLADDR, &[2, 0, 0, 0, 0, 1]));
        payload.extend(attribute(libc::NDA_CACHEINFO, &[0; 16]));
        payload
    }

    #[test]
    fn one_that_was_heard_is_known_and_to_be_asked_again_and_one_for_good_stays_so() {
        let heard = parse(&told(libc::NUD_REACHABLE)).unwrap();
        assert!(!heard.is_for_good());
        assert_eq!(heard.on(9)[4..10], [9, 0, 0, 0, libc::NUD_STALE as u8, 0]);
        assert!(parse(&told(libc::NUD_PERMANENT)).unwrap().is_for_good());
        assert_eq!(parse(&told(libc::NUD_FAILED)), None);
        assert_eq!(parse(&told(libc::NUD_NOARP)), None);
    }

    #[test]
    fn a_message_cut_anywhere_makes_no_panic() {
        let whole = told(libc::NUD_STALE);
        for length in 0..whole.len() {
            let _ = parse(&whole[..length]).map(|neighbour| neighbour.on(1));
        }
    }
}
