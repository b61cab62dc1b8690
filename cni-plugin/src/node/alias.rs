//! Whose a link is: written into the alias of the host's end, where it lives exactly as long as the link.
//!
//! So DEL and GC know the plugin's own links from others' even when the agent is down, and so does `ip link`.

use shunt_agent_api::{AttachmentKey, fnv};

/// `IFALIASZ` without the terminating zero.
const LONGEST: usize = 255;
const MARK: &str = "shunt:";
/// Before a number that stands for a name. No name has it.
const NUMBER: char = '#';

/// The mark on a bridge that the plugin made.
pub(crate) const BRIDGE: &str = shunt_agent_api::BRIDGE_MARK;

/// What the mark of an attachment names. None of its parts can have a slash in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alias<'a> {
    network: &'a str,
    container: &'a str,
    pub(crate) ifname: &'a str,
}

impl<'a> Alias<'a> {
    /// The mark of an attachment: its key, or where that is longer than an alias can be, numbers for network and container.
    pub(crate) fn of(key: &AttachmentKey) -> String {
        let text = format!("{MARK}{key}");
        if text.len() <= LONGEST {
            return text;
        }
        format!("{MARK}{}/{}/{}", number(&key.network), number(&key.container), key.ifname)
    }

    /// Reads a mark; none where a link's alias is no attachment's.
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.strip_prefix(MARK)?.split('/');
        let alias = Self { network: parts.next()?, container: parts.next()?, ifname: parts.next()? };
        parts.next().is_none().then_some(alias)
    }

    /// Whether a link's alias is the mark of this attachment.
    pub(crate) fn is_of(text: Option<&str>, key: &AttachmentKey) -> bool {
        text.is_some_and(|text| text == Self::of(key))
    }

    /// Whether a link's alias is the mark of any attachment.
    pub(crate) fn is_mark(text: Option<&str>) -> bool {
        text.is_some_and(|text| Alias::read(text).is_some())
    }

    /// Whether it names this network.
    pub(crate) fn is_in(&self, network: &str) -> bool {
        names(self.network, network)
    }

    /// The container as the mark names it.
    pub(crate) fn container(&self) -> &'a str {
        self.container
    }
}

/// How a mark may name a container.
pub(crate) fn names_of(container: &str) -> [String; 2] {
    [container.to_owned(), number(container)]
}

fn names(part: &str, name: &str) -> bool {
    part == name || part.starts_with(NUMBER) && part == number(name)
}

/// A name's number: the same in every release.
fn number(name: &str) -> String {
    format!("{NUMBER}{:032x}", fnv::of_128_bits(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(network: &str, container: &str) -> AttachmentKey {
        AttachmentKey {
            network: network.to_owned(),
            container: container.to_owned(),
            ifname: "eth0".to_owned(),
        }
    }

    #[test]
    fn a_mark_is_read_as_it_is_written() {
        let text = Alias::of(&key("pods", "c-1"));
        assert_eq!(text, "shunt:pods/c-1/eth0");
        let read = Alias::read(&text).unwrap();
        assert!(read.is_in("pods") && read.container() == "c-1" && read.ifname == "eth0");
        assert!(!read.is_in("pod") && Alias::is_of(Some(&text), &key("pods", "c-1")));
    }

    #[test]
    fn names_that_are_too_long_for_a_mark_are_numbers_in_it() {
        let [long, other] = ["n", "m"].map(|letter| letter.repeat(200));
        let text = Alias::of(&key(&long, &other));
        assert!(text.len() <= LONGEST, "{text}");
        let read = Alias::read(&text).unwrap();
        assert!(read.is_in(&long) && !read.is_in(&other));
        assert!(names_of(&other).contains(&read.container().to_owned()));
        assert!(
            Alias::is_of(Some(&text), &key(&long, &other))
                && !Alias::is_of(Some(&text), &key(&other, &other))
        );
    }

    #[test]
    fn other_texts_name_no_attachment() {
        for text in ["", "shunt", "shunt:a/b", "shunt:a/b/c/d", "pods/c-1/eth0"] {
            assert!(!Alias::is_mark(Some(text)), "{text}");
        }
    }
}
