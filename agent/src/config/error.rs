//! Why a configuration file cannot be used, and what was meant.

use std::io;
use std::path::PathBuf;

/// From this likeness on (Jaro-Winkler) an unknown key is taken for a slip.
const LIKE: f64 = 0.8;

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
    #[error("{path}: {source}{}", nearest(source))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
}

/// The known key or value that is most like an unknown one, as a question; nothing where none is like it. serde names the
/// unknown one and then all that it knows, each between backticks.
fn nearest(error: &toml::de::Error) -> String {
    let message = error.message();
    if !message.starts_with("unknown ") {
        return String::new();
    }
    let mut words = message.split('`').skip(1).step_by(2);
    let Some(unknown) = words.next() else { return String::new() };
    let likeness = |word: &str| strsim::jaro_winkler(unknown, word);
    let nearest = words.max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    nearest
        .filter(|word| likeness(word) > LIKE)
        .map(|word| format!("did you mean `{word}`?"))
        .unwrap_or_default()
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
            let error = toml::from_str::<Options>(text).unwrap_err();
            assert!(error.to_string().contains(unknown), "{error}");
            assert_eq!(nearest(&error), meant, "{error}");
        }
    }
}
