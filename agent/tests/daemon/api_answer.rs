//! What an API server answers.

use serde_json::{Value, json};
use tokio::sync::mpsc;

/// What is said to a request.
pub(crate) enum Answer {
    Said(u16, String),
    Stream(mpsc::UnboundedReceiver<String>),
    Endless,
}

/// 200, and the object.
pub(crate) fn said(object: &Value) -> Answer {
    Answer::Said(200, object.to_string())
}

/// A status that is a failure.
pub(crate) fn failure(code: u16, reason: &str, message: &str) -> Answer {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": message });
    Answer::Said(code, status.to_string())
}

/// There is no such object: the server names it.
pub(crate) fn missing(name: &str) -> Answer {
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
        "reason": "NotFound", "message": "no such object", "details": { "name": name } });
    Answer::Said(404, status.to_string())
}
