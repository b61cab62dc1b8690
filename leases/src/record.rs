//! What an address's file says: who holds it.

use shunt_agent_api::is_interface_of;

/// Between the container's id and the interface's name; the same on every system.
const SEPARATOR: &[u8] = b"\r\n";

/// The holder of an address as its file records it: `container \r\n ifname`.
///
/// Versions of host-local before 0.8 recorded the container alone; such files may still lie on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record<'a> {
    container: &'a [u8],
    ifname: Option<&'a [u8]>,
}

impl<'a> Record<'a> {
    /// The record of an attachment's address.
    pub fn of(container: &'a str, ifname: &'a str) -> Self {
        Self { container: container.as_bytes(), ifname: Some(ifname.as_bytes()) }
    }

    /// Reads a file's content; white space around it means nothing.
    pub fn parse(content: &'a [u8]) -> Self {
        let content = content.trim_ascii();
        match content.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
            Some(at) => Self { container: &content[..at], ifname: Some(&content[at + SEPARATOR.len()..]) },
            None => Self { container: content, ifname: None },
        }
    }

    /// The file's content.
    pub fn to_bytes(self) -> Vec<u8> {
        match self.ifname {
            Some(ifname) => [self.container, SEPARATOR, ifname].concat(),
            None => self.container.to_vec(),
        }
    }

    /// The container's id.
    pub fn container(self) -> &'a [u8] {
        self.container
    }

    /// Whether this is an old record, which does not tell the interface.
    pub fn is_old(self) -> bool {
        self.ifname.is_none()
    }

    /// Whether this is an old record of the same container.
    pub fn is_old_record_of(self, attachment: Record<'_>) -> bool {
        self.is_old() && self.container == attachment.container
    }

    /// Whether the address may be this attachment's.
    pub fn may_be(self, attachment: Record<'_>) -> bool {
        self == attachment || self.is_old_record_of(attachment)
    }

    /// Whether this is the record of a VLAN's interface on an attachment's.
    pub fn is_on(self, attachment: Record<'_>) -> bool {
        let name = |record: Record<'a>| record.ifname.and_then(|ifname| std::str::from_utf8(ifname).ok());
        let parent = attachment.ifname.and_then(|ifname| std::str::from_utf8(ifname).ok());
        self.container == attachment.container
            && name(self).zip(parent).is_some_and(|(own, parent)| is_interface_of(own, parent))
    }

    /// An empty file: made by hand to keep an address out of use, or by a crash before it could be written.
    pub fn is_empty(self) -> bool {
        self.container.is_empty() && self.is_old()
    }

    /// For messages: `container/ifname`.
    pub fn describe(self) -> String {
        let container = String::from_utf8_lossy(self.container);
        match self.ifname {
            Some(ifname) => format!("{container}/{}", String::from_utf8_lossy(ifname)),
            None if self.container.is_empty() => "an empty file".to_owned(),
            None => container.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_being_written_and_read() {
        let record = Record::of("c1", "eth0");
        assert_eq!(record.to_bytes(), b"c1\r\neth0");
        assert_eq!(Record::parse(b"c1\r\neth0"), record);
        assert_eq!(Record::parse(b" c1\r\neth0\n"), record);
    }

    #[test]
    fn an_old_record_may_be_any_interface_of_its_container() {
        let old = Record::parse(b"c1\n");
        assert!(old.may_be(Record::of("c1", "eth0")) && old.may_be(Record::of("c1", "net1")));
        assert!(!old.may_be(Record::of("c2", "eth0")));
        assert!(!Record::parse(b"c1\r\nnet1").may_be(Record::of("c1", "eth0")));
    }

    #[test]
    fn an_empty_file_names_no_holder() {
        assert!(Record::parse(b"\n").is_empty());
        assert!(!Record::parse(b"c1").is_empty());
    }
}
