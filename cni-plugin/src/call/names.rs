//! What container ids, network names and interface names may look like.

/// A name that the specification, or the kernel, does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Container ids and network names: a letter or digit, then letters, digits, `_`, `.` and `-`.
    #[error(
        "{what} `{name}` has a character that is not allowed: it must match ^[a-zA-Z0-9][a-zA-Z0-9_.\\-]*$"
    )]
    Character {
        /// What is named.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Container ids and network names: the agent has no longer ones, and they are parts of files' names.
    #[error("{what} has {length} bytes, more than {MAX_IDENTIFIER}")]
    Length {
        /// What is named.
        what: &'static str,
        /// Its bytes.
        length: usize,
    },
    /// The kernel's rules for interfaces (`dev_valid_name`), and the specification's.
    #[error("interface name `{name}` {why}")]
    Interface {
        /// The name.
        name: String,
        /// The rule that it breaks.
        why: &'static str,
    },
}

/// `IFNAMSIZ` without the terminating zero.
pub const MAX_INTERFACE_NAME: usize = 15;

/// Bytes of a container id, and of a network's name.
pub const MAX_IDENTIFIER: usize = 200;

/// Checks that an attachment of this container id, or of a network of this name, can be made; `what` says which, for the error. Not for DEL: of a longer one there
/// is no attachment, and nothing to be refused.
///
/// # Errors
/// [`NameError::Length`].
pub fn check_length(what: &'static str, name: &str) -> Result<(), NameError> {
    if name.len() <= MAX_IDENTIFIER { Ok(()) } else { Err(NameError::Length { what, length: name.len() }) }
}

/// Checks a container id or a network name; `what` says which, for the error.
///
/// # Errors
/// [`NameError::Character`].
pub fn check_identifier(what: &'static str, name: &str) -> Result<(), NameError> {
    let first = name.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    let rest = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    if first && rest { Ok(()) } else { Err(NameError::Character { what, name: name.to_owned() }) }
}

/// Checks the name of an interface.
///
/// # Errors
/// [`NameError::Interface`].
pub fn check_interface(name: &str) -> Result<(), NameError> {
    let why = match name {
        "" => "is empty",
        "." | ".." => "is a directory's",
        _ if name.len() > MAX_INTERFACE_NAME => "has more than 15 characters",
        _ if name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace()) => {
            "has a slash, a colon or white space in it"
        }
        _ if name.contains(char::is_control) => "has a control character in it",
        // The kernel would make a number of it (`dev_alloc_name`).
        _ if name.contains('%') => "has a percent sign in it",
        _ => return Ok(()),
    };
    Err(NameError::Interface { name: name.to_owned(), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_begin_with_a_letter_or_digit() {
        for name in ["a", "0", "pod_1.x-y", "A"] {
            assert_eq!(check_identifier("network", name), Ok(()), "{name}");
        }
        for name in ["", "-a", ".a", "_a", "a/b", "a b", "ä", "a\n", "a;b"] {
            assert!(check_identifier("network", name).is_err(), "{name}");
        }
    }

    #[test]
    fn identifiers_have_at_most_two_hundred_bytes() {
        assert_eq!(check_length("container id", &"c".repeat(200)), Ok(()));
        let refused = check_length("container id", &"c".repeat(201)).unwrap_err().to_string();
        assert_eq!(refused, "container id has 201 bytes, more than 200");
    }

    #[test]
    fn interface_names_obey_the_kernel() {
        for name in ["eth0", "net1.5", "abcdefghijklmno"] {
            assert_eq!(check_interface(name), Ok(()), "{name}");
        }
        for name in
            ["", ".", "..", "abcdefghijklmnop", "a/b", "a:b", "a b", "a\u{a0}b", "br%d", "%", "a\u{7}", "a\0"]
        {
            assert!(check_interface(name).is_err(), "{name}");
        }
    }
}
