//! Why a configuration file cannot be used, and what was meant.

use std::io;
use std::path::PathBuf;

use super::cure::nearest;

/// A configuration file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The file system's word.
        source: io::Error,
    },
    /// It is not TOML, or has an unknown key or value.
    #[error("{path}: {source}{}", meant(source))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
}

impl ConfigError {
    /// What to do about it.
    pub fn cure(&self) -> &'static str {
        match self {
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "write the file, or name another one"
            }
            Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "ask as root, or have the file readable"
            }
            Self::Unreadable { .. } => "name a TOML file: a regular one, of UTF-8 text and at most 1 MiB",
            Self::Invalid { .. } => "correct the key, or take it out",
        }
    }
}

/// The key or value that was meant, as a question; nothing where none is known that is like it.
fn meant(error: &toml::de::Error) -> String {
    nearest(error.message()).map(|word| format!("did you mean `{word}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    #[test]
    fn an_unknown_key_is_named_in_the_error_with_the_one_that_was_meant() {
        for (text, unknown, meant) in [
            ("sokcet = '/run/x'", "`sokcet`", "did you mean `socket`?"),
            ("[uplinks.eth1]\negres = '1G'", "`egres`", "did you mean `egress`?"),
            ("masquerade = 'kernal'", "`kernal`", "did you mean `kernel`?"),
            ("zzz = 1", "`zzz`", ""),
        ] {
            let source = Box::new(toml::from_str::<Options>(text).unwrap_err());
            let error = ConfigError::Invalid { path: "agent.toml".into(), source }.to_string();
            assert!(error.contains(unknown) && error.ends_with(meant), "{error}");
        }
    }
}
