//! VLAN interfaces: what the agent is told of one, and its name where the configuration gives it none.

use serde::{Deserialize, Serialize};

use crate::{AttachmentKey, fnv};

/// The longest name of a link (`IFNAMSIZ` with its zero).
const LONGEST: usize = 15;

/// A veth whose host end is joined to one VLAN of a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanInterface {
    /// The VLAN, 1 to 4094.
    pub id: u16,
    /// Whether its parent is in the container as well, a veth, whose host end then stands in the place of the master.
    #[serde(default)]
    pub within: bool,
}

/// The name of the interface of the VLAN `id` on `parent`, as people write it: `eth0.10`. Where that is more than a link's name may
/// be, the parent's name gives way to its beginning and a number made of all of it: `longpa~0k3vz.10`. Two parents of one
/// container whose names begin alike and have the same number, one pair in thirty million, cannot both have it: the second is refused.
pub fn interface_name(parent: &str, id: u16) -> String {
    let plain = format!("{parent}.{id}");
    if plain.len() <= LONGEST {
        return plain;
    }
    let ending = format!("~{}.{id}", number(parent));
    let mut beginning = String::new();
    for letter in parent.chars() {
        if beginning.len() + letter.len_utf8() + ending.len() > LONGEST {
            break;
        }
        beginning.push(letter);
    }
    beginning + &ending
}

/// Five letters and digits made of a name's number, folded.
fn number(name: &str) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let hash = fnv::of_64_bits(name.as_bytes());
    let folded = hash ^ hash >> 25 ^ hash >> 50;
    (0..5).map(|place| char::from(DIGITS[(folded >> (place * 5)) as usize & 31])).collect()
}

impl AttachmentKey {
    /// Whether this is the attachment of `parent`, or of a VLAN's interface on it, which a chain made for the same container.
    pub fn belongs_to(&self, parent: &Self) -> bool {
        if self.network != parent.network || self.container != parent.container {
            return false;
        }
        self.ifname == parent.ifname || is_interface_of(&self.ifname, &parent.ifname)
    }
}

/// Whether `name` is that of a VLAN's interface on `parent`.
pub fn is_interface_of(name: &str, parent: &str) -> bool {
    let id = name.rsplit_once('.').and_then(|(_, id)| id.parse().ok());
    id.is_some_and(|id| interface_name(parent, id) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_fits_is_the_parents_and_the_vlan() {
        assert_eq!(interface_name("eth0", 10), "eth0.10");
        assert_eq!(interface_name("tenletters", 4094), "tenletters.4094");
    }

    #[test]
    fn a_name_that_is_too_long_is_shortened_and_still_tells_parents_and_vlans_apart() {
        let names: Vec<String> = ["fifteen-letters", "fifteen-lettert", "fifteen-lette", "eleven-long"]
            .iter()
            .flat_map(|parent| [1000, 4094].map(|id| interface_name(parent, id)))
            .collect();
        for (at, name) in names.iter().enumerate() {
            assert!(name.len() <= LONGEST && !names[..at].contains(name), "{names:?}");
        }
        assert_eq!(interface_name("fifteen-letters", 4094), names[1], "it is the same every time");
    }

    #[test]
    fn a_name_is_cut_between_letters() {
        let name = interface_name("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}", 4000);
        assert!(name.len() <= LONGEST && name.ends_with(".4000"), "{name}");
    }

    #[test]
    fn an_interface_belongs_to_the_attachment_that_it_is_on() {
        let key = |ifname: &str| AttachmentKey {
            network: "n".to_owned(),
            container: "c".to_owned(),
            ifname: ifname.to_owned(),
        };
        let (parent, long) = (key("eth0"), key("fifteen-letters"));
        assert!(parent.belongs_to(&parent) && key("eth0.10").belongs_to(&parent));
        assert!(key(&interface_name("fifteen-letters", 7)).belongs_to(&long));
        for other in ["eth1", "eth1.10", "eth0.x", "eth0.10.20", "eth0."] {
            assert!(!key(other).belongs_to(&parent), "{other}");
        }
        assert!(!AttachmentKey { container: "d".to_owned(), ..key("eth0.10") }.belongs_to(&parent));
    }
}
