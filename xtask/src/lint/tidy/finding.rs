//! What the rules find.

use super::source::Source;

/// What a rule has to say about a place.
pub(super) struct Finding {
    pub(super) place: String,
    pub(super) message: String,
}

impl Finding {
    pub(super) fn in_file(source: &Source, message: impl Into<String>) -> Self {
        Self { place: source.path.clone(), message: message.into() }
    }

    pub(super) fn at(source: &Source, line: usize, message: impl Into<String>) -> Self {
        Self { place: format!("{}:{line}", source.path), message: message.into() }
    }
}
