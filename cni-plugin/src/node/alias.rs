//! Whose a link is: written into the alias of the host's end, where it lives exactly as long as the link.
//!
//! So DEL and GC know the plugin's own links from others' even when the agent is down, and so does `ip link`.

use shunt_agent_api::AttachmentKey;

/// `IFALIASZ` without the terminating zero.
const LONGEST: usize = 255;
const MARK: &str = "shunt:";

/// The mark on a bridge that the plugin made.
pub(crate) const BRIDGE: &str = "shunt";

/// The mark on the host's end of an attachment.
#[derive(Debug)]
pub(crate) struct Alias;

impl Alias {
    /// The text for an attachment; none when it is too long for the kernel.
    pub(crate) fn of(key: &AttachmentKey) -> Option<String> {
        Some(format!("{MARK}{key}")).filter(|text| text.len() <= LONGEST)
    }

    /// The attachment that a link's alias names. None of the key's parts can have a slash in it.
    pub(crate) fn read(text: &str) -> Option<AttachmentKey> {
        let mut parts = text.strip_prefix(MARK)?.split('/');
        let mut part = || parts.next().map(str::to_owned);
        let key = AttachmentKey { network: part()?, container: part()?, ifname: part()? };
        parts.next().is_none().then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(network: &str) -> AttachmentKey {
        AttachmentKey { network: network.to_owned(), container: "c-1".to_owned(), ifname: "eth0".to_owned() }
    }

    #[test]
    fn an_alias_is_read_as_it_is_written() {
        let text = Alias::of(&key("pods")).unwrap();
        assert_eq!(text, "shunt:pods/c-1/eth0");
        assert_eq!(Alias::read(&text), Some(key("pods")));
    }

    #[test]
    fn other_texts_name_no_attachment() {
        for text in ["", "shunt", "shunt:a/b", "shunt:a/b/c/d", "pods/c-1/eth0"] {
            assert_eq!(Alias::read(text), None, "{text}");
        }
        assert_eq!(Alias::of(&key(&"n".repeat(300))), None);
    }
}
