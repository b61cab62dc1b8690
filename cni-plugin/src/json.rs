//! What is printed.

use serde::Serialize;

/// JSON as Go's plugins indent it.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
    if value.serialize(&mut serializer).is_err() {
        return String::new();
    }
    text.push(b'\n');
    String::from_utf8_lossy(&text).into_owned()
}
