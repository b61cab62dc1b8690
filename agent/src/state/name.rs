//! File names of attachment keys.

use shunt_agent_api::AttachmentKey;

/// Between the parts of a key.
const SEPARATOR: char = '@';

/// The suffix of state files.
pub(super) const SUFFIX: &str = ".json";

/// `network@container@ifname.json`. Whatever is not a letter, digit, `_`, `-` or inner `.` becomes `%XX`, so that no
/// key is another's name, a path or a hidden file.
pub(super) fn of(key: &AttachmentKey) -> String {
    let mut name = String::new();
    for (index, part) in [&key.network, &key.container, &key.ifname].into_iter().enumerate() {
        if index > 0 {
            name.push(SEPARATOR);
        }
        for byte in part.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => name.push(byte.into()),
                b'.' if !name.is_empty() => name.push('.'),
                _ => name.push_str(&format!("%{byte:02x}")),
            }
        }
    }
    name + SUFFIX
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(network: &str, container: &str, ifname: &str) -> AttachmentKey {
        AttachmentKey { network: network.into(), container: container.into(), ifname: ifname.into() }
    }

    #[test]
    fn an_ordinary_key_reads_as_it_is() {
        assert_eq!(of(&key("net.a", "0af3", "eth0")), "net.a@0af3@eth0.json");
    }

    proptest! {
        #[test]
        fn no_key_leaves_the_directory_or_meets_another(a in ".{0,8}", b in ".{0,8}", c in ".{0,8}", d in "[@%./a]{0,4}") {
            let name = of(&key(&a, &b, &c));
            prop_assert!(!name.contains('/') && !name.starts_with('.'));
            let other = key(&d, &b, &c);
            prop_assert_eq!(of(&other) == name, d == a);
        }
    }
}
