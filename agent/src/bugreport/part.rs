//! One part of a report: what is had of it, or why it is not.

use std::io;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

/// The most bytes of one part; a longer one is cut.
pub(super) const MOST: usize = 4 << 20;

/// How a part is had, by a deadline.
pub(super) struct Job {
    /// Its name in the archive.
    pub(super) file: &'static str,
    pub(super) work: Box<dyn FnOnce(Instant) -> Outcome + Send>,
}

impl Job {
    pub(super) fn new(
        file: &'static str,
        work: impl FnOnce(Instant) -> Result<Had, Lack> + Send + 'static,
    ) -> Self {
        Self { file, work: Box::new(|by| Outcome(work(by))) }
    }
}

/// What became of a part.
#[derive(Debug)]
pub(super) struct Outcome(pub(super) Result<Had, Lack>);

/// A part that was had.
#[derive(Debug)]
pub(super) struct Had {
    pub(super) content: Content,
    /// What the reader has to know of it, as that it was cut.
    pub(super) note: Option<String>,
}

/// What is in a part.
#[derive(Debug)]
pub(super) enum Content {
    Json(Value),
    Text(String),
}

/// Why a part was not had.
#[derive(Debug)]
pub(super) enum Lack {
    /// There is nothing of the kind on this node.
    Absent(String),
    /// It should be there.
    Failed(String),
}

impl Had {
    /// Something as JSON, of a list only what fits into [`MOST`] bytes.
    pub(super) fn json(value: impl Serialize) -> Result<Self, Lack> {
        let value = serde_json::to_value(value).map_err(|error| Lack::Failed(error.to_string()))?;
        Ok(match value {
            Value::Array(all) => Self::list(all),
            value => Self { content: Content::Json(value), note: None },
        })
    }

    fn list(mut all: Vec<Value>) -> Self {
        let (count, mut bytes) = (all.len(), 0);
        let fit = all.iter().take_while(|entry| {
            bytes += entry.to_string().len() * 2;
            bytes <= MOST
        });
        let fit = fit.count();
        all.truncate(fit);
        let note = (fit < count).then(|| format!("cut: {fit} of {count} entries"));
        Self { content: Content::Json(Value::Array(all)), note }
    }

    /// Text, of which the end is kept where it is longer than [`MOST`] bytes.
    pub(super) fn text(text: impl Into<String>) -> Self {
        let text: String = text.into();
        let excess = text.len().saturating_sub(MOST);
        if excess == 0 {
            return Self { content: Content::Text(text), note: None };
        }
        // From a whole line on.
        let tail = &text.as_bytes()[excess..];
        let begin = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let tail = String::from_utf8_lossy(&tail[begin..]).into_owned();
        let note = format!("cut: the last {} of {} bytes", tail.len(), text.len());
        Self { content: Content::Text(tail), note: Some(note) }
    }

    pub(super) fn noting(mut self, note: Option<String>) -> Self {
        self.note = note.or(self.note);
        self
    }

    /// The part's bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self.content {
            Content::Text(text) => text.into_bytes(),
            Content::Json(value) => format!("{value:#}\n").into_bytes(),
        }
    }
}

impl Lack {
    /// What the file system says of something that should be there.
    pub(super) fn of(what: &str, error: &io::Error) -> Self {
        let cure = if error.kind() == io::ErrorKind::PermissionDenied { ": run it as root" } else { "" };
        let said = format!("{what}: {error}{cure}");
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent(said),
            _ => Self::Failed(said),
        }
    }
}

impl Outcome {
    /// Changes every text in it, keys of objects excepted.
    pub(super) fn map_text(self, change: &impl Fn(String) -> String) -> Self {
        Self(match self.0 {
            Ok(Had { content, note }) => {
                let content = match content {
                    Content::Text(text) => Content::Text(change(text)),
                    Content::Json(value) => Content::Json(map_strings(value, change)),
                };
                Ok(Had { content, note: note.map(change) })
            }
            Err(Lack::Absent(why)) => Err(Lack::Absent(change(why))),
            Err(Lack::Failed(why)) => Err(Lack::Failed(change(why))),
        })
    }
}

fn map_strings(value: Value, change: &impl Fn(String) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(all) => all.into_iter().map(|value| map_strings(value, change)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, map_strings(value, change))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        let line = "x".repeat(99) + "\n";
        let Had { content: Content::Text(text), note } = Had::text(line.repeat(MOST / 100 + 10)) else {
            panic!("no text")
        };
        assert!(text.len() <= MOST && text.starts_with("x") && text.ends_with("x\n"), "{}", text.len());
        assert!(note.is_some_and(|note| note.starts_with("cut: the last")));
        let entries = vec!["y".repeat(1 << 20); 9];
        let had = Had::json(&entries).unwrap();
        assert_eq!(had.note.as_deref(), Some("cut: 1 of 9 entries"));
        assert!(Had::json(&entries[..1]).unwrap().note.is_none());
    }
}
