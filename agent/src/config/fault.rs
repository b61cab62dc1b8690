//! What is wrong with a configuration, at one place of it.

use std::fmt;

use serde::Serialize;

use super::key::{Key, Lines};

/// What is wrong at one place; the field names are the contract of `config check --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The key; none where it is the file.
    pub key: Option<String>,
    /// Its line in the file, from 1 on.
    pub line: Option<usize>,
    /// Why it is one.
    pub reason: String,
    /// What to do.
    pub cure: String,
    /// Whether the agent does not start with it; else it starts, and does not do what the file says.
    #[serde(rename = "refused")]
    pub is_refused: bool,
}

impl Fault {
    /// With this the agent does not start.
    pub fn refused(key: Option<&Key>, line: Option<usize>, reason: String, cure: String) -> Self {
        Self { key: key.map(Key::to_string), line, reason, cure, is_refused: true }
    }

    /// With this the agent starts, and does not do what the key says.
    pub fn ignored(key: &str, line: Option<usize>, reason: String, cure: String) -> Self {
        Self { key: Some(key.to_owned()), line, reason, cure, is_refused: false }
    }

    /// The file is no TOML.
    pub(super) fn of_syntax(error: &toml::de::Error, lines: &Lines) -> Self {
        let line = error.span().map(|bytes| lines.number(bytes.start));
        let is_twice = error.message().starts_with("duplicate key");
        let cure = if is_twice { "take one of the two out" } else { "correct the line: it is no TOML" };
        Self::refused(None, line, error.message().to_owned(), cure.to_owned())
    }
}

impl fmt::Display for Fault {
    /// In one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, line, reason, cure, .. } = self;
        if let Some(line) = line {
            write!(f, "line {line}: ")?;
        }
        if let Some(key) = key {
            write!(f, "{key}: ")?;
        }
        write!(f, "{reason}; {cure}")
    }
}
