//! File names of attachment keys.

use shunt_agent_api::{AttachmentKey, fnv};

/// Between the parts of a key.
const SEPARATOR: char = '@';

/// The longest name, which leaves room for the suffixes of a file that is not finished (`NAME_MAX` is 255).
const LONGEST: usize = 240;

/// The suffix of state files.
pub(super) const SUFFIX: &str = ".json";

/// `network@container@ifname.json`. Whatever is not a letter, digit, `_`, `-` or inner `.` becomes `%XX`, so that no
/// key is another's name, a path or a hidden file. Where that is too long, its beginning and a number of all of it, after a `%`, stand for it.
pub(super) fn of(key: &AttachmentKey) -> String {
    of_parts(&[&key.network, &key.container, &key.ifname])
}

/// The same of other parts.
pub(super) fn of_parts(parts: &[&str]) -> String {
    let mut name = String::new();
    for (index, part) in parts.iter().enumerate() {
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
    if name.len() + SUFFIX.len() > LONGEST {
        let number = format!("%{:032x}", fnv::of_128_bits(name.as_bytes()));
        name.truncate(LONGEST - SUFFIX.len() - number.len());
        name.push_str(&number);
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

    #[test]
    fn a_long_key_has_a_name_that_a_file_can_have_and_no_other_key() {
        let long = |last: &str| key(&"n".repeat(200), &format!("{}{last}", "c".repeat(199)), "eth0");
        let names = [of(&long("1")), of(&long("2")), of(&key(&"n.".repeat(100), "c", "eth0"))];
        assert!(names.iter().all(|name| name.len() <= LONGEST && name.ends_with(SUFFIX)), "{names:?}");
        assert_ne!(names[0], names[1]);
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
