//! Of which trace a request is a part.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A `traceparent` (W3C Trace Context, section 3.2): two hexadecimal digits of version, 32 of the trace's id, 16 of the caller's span, two of flags,
/// all lower case, between hyphens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TraceParent(String);

/// The text is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no `traceparent` of W3C Trace Context")]
pub struct NoTraceParent;

/// Where the trace's id, the span's and the flags begin, and where they end.
const FIELDS: [(usize, usize); 4] = [(0, 2), (3, 35), (36, 52), (53, 55)];

/// The version that nobody may use (section 3.2.2.1).
const INVALID_VERSION: &str = "ff";

impl TraceParent {
    /// The trace's id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        self.field(1)
    }

    /// The id of the caller's span: 16 hexadecimal digits.
    pub fn span_id(&self) -> &str {
        self.field(2)
    }

    /// Whether the caller records its spans (section 3.2.2.5.1).
    pub fn is_sampled(&self) -> bool {
        u8::from_str_radix(self.field(3), 16).is_ok_and(|flags| flags & 1 != 0)
    }

    fn field(&self, index: usize) -> &str {
        let (begin, end) = FIELDS[index];
        &self.0[begin..end]
    }
}

impl FromStr for TraceParent {
    type Err = NoTraceParent;

    /// Later versions may have more behind the flags (section 3.2.4); it is left off.
    fn from_str(text: &str) -> Result<Self, NoTraceParent> {
        let length = FIELDS[3].1;
        let known = text.get(..length).ok_or(NoTraceParent)?;
        let is_right = |(position, byte): (usize, u8)| match position {
            2 | 35 | 52 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        };
        let parent = Self(known.to_owned());
        let is_nobodys = |field: &str| field.bytes().all(|digit| digit == b'0');
        let may_be_longer = parent.field(0) != "00" && text.as_bytes().get(length) == Some(&b'-');
        if !known.bytes().enumerate().all(is_right)
            || parent.field(0) == INVALID_VERSION
            || is_nobodys(parent.trace_id())
            || is_nobodys(parent.span_id())
            || text.len() > length && !may_be_longer
        {
            return Err(NoTraceParent);
        }
        Ok(parent)
    }
}

impl TryFrom<String> for TraceParent {
    type Error = NoTraceParent;

    fn try_from(text: String) -> Result<Self, NoTraceParent> {
        text.parse()
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> Self {
        parent.0
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn its_parts_are_where_the_recommendation_has_them() {
        let parent: TraceParent = EXAMPLE.parse().unwrap();
        assert_eq!(parent.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((parent.span_id(), parent.is_sampled()), ("b7ad6b7169203331", true));
        let later: TraceParent =
            format!("{}-more", EXAMPLE.replacen("00", "01", 1).replace("-01", "-00")).parse().unwrap();
        assert!(!later.is_sampled());
        assert_eq!(later.to_string().len(), EXAMPLE.len());
    }

    #[test]
    fn what_is_no_traceparent_is_none() {
        for text in [
            String::new(),
            EXAMPLE.to_uppercase(),
            format!("{EXAMPLE}-more"),
            format!("{EXAMPLE}0"),
            EXAMPLE.replacen("00", "ff", 1),
            EXAMPLE.replace("b7ad6b7169203331", "0000000000000000"),
            EXAMPLE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            EXAMPLE.replace('-', "_"),
            EXAMPLE.replace("0af", "0\na"),
            EXAMPLE.replace("af", "é"),
            "é".repeat(40),
        ] {
            assert_eq!(text.parse::<TraceParent>(), Err(NoTraceParent), "{text}");
            assert!(serde_json::from_value::<TraceParent>(text.clone().into()).is_err(), "{text}");
        }
    }
}
