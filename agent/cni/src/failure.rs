//! An error of CNI as a gRPC status, and back.

use std::borrow::Cow;

use prost::{DecodeError, Message, Name};
use prost_types::Any;
use tonic::{Code, Status};

use crate::proto::v1;

/// What precedes a message's name in an [`Any`].
const TYPES: &str = "type.googleapis.com/";

/// Bytes of the texts in a status: of the error's message and details, and of the message that gRPC shows. The last one is in the trailers twice, with three
/// bytes for one where it is escaped, the others in base64: together they have less than 4 KiB, of the 8 that clients accept.
const MOST_OF_MSG: usize = 1024;
const MOST_OF_DETAILS: usize = 512;
const MOST_OF_SUMMARY: usize = 300;

/// Bytes of a text that is logged.
const MOST_OF_LOG: usize = 1024;

/// What is said of a panic.
const FAULT: &str = "the plugin's procedure ended by a fault of its own; a DEL takes down what it has left, and the agent's log says where";

/// An error of CNI: the JSON object of a failed plugin without its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code: 1 to 99 are the specification's, 100 and more the plugin's.
    pub code: u32,
    /// What failed.
    pub msg: String,
    /// More about it. May be empty.
    pub details: String,
}

/// The codes that the service itself gives (CNI specification 1.1, "Error"; 106 is the plugin's).
pub(crate) mod codes {
    pub(crate) const VERSION: u32 = 1;
    pub(crate) const UNSUPPORTED_FIELD: u32 = 2;
    pub(crate) const UNKNOWN_CONTAINER: u32 = 3;
    pub(crate) const ENVIRONMENT: u32 = 4;
    pub(crate) const IO: u32 = 5;
    pub(crate) const DECODING: u32 = 6;
    pub(crate) const INVALID_CONFIG: u32 = 7;
    pub(crate) const INVALID_NETNS: u32 = 8;
    pub(crate) const TRY_AGAIN: u32 = 11;
    pub(crate) const EXISTS: u32 = 106;
    pub(crate) const OTHER: u32 = 999;
}

/// The details of a status cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DetailError {
    /// The details are no `google.rpc.Status`.
    #[error("the status's details are not a google.rpc.Status: {0}")]
    Status(DecodeError),
    /// The error of CNI in them is broken.
    #[error("the error in the status's details: {0}")]
    Error(DecodeError),
}

/// `google.rpc.Status`, as published in google/rpc/status.proto.
#[derive(Clone, PartialEq, Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        failure.to_status()
    }
}

impl Name for v1::Error {
    const PACKAGE: &'static str = "shunt.cni.v1";
    const NAME: &'static str = "Error";
}

impl Failure {
    /// Without more about it.
    pub(crate) fn new(code: u32, msg: impl Into<String>) -> Self {
        Self { code, msg: msg.into(), details: String::new() }
    }

    /// The plugin's procedure has panicked.
    pub(crate) fn fault() -> Self {
        Self::new(codes::OTHER, FAULT)
    }

    /// Whether it is [`Failure::fault`]: what was begun is not undone.
    pub(crate) fn is_fault(&self) -> bool {
        self.code == codes::OTHER && self.msg == FAULT
    }

    /// The error that a plugin has printed; of one that printed none, that it failed as `status` says.
    pub(crate) fn printed(plugin: &str, output: &[u8], status: &str) -> Self {
        match serde_json::from_slice::<shunt::call::Failure>(output) {
            Ok(shunt::call::Failure { code, msg, details, .. }) => Self { code, msg, details },
            Err(_) => {
                Self::new(codes::OTHER, format!("the plugin {plugin} failed without a CNI error: {status}"))
            }
        }
    }

    /// The status of a call that failed with this error: the code of gRPC that is nearest, `msg`, and the error as the one detail. Long texts are cut, for
    /// clients refuse long trailers, and the code with them.
    #[must_use]
    pub fn to_status(&self) -> Status {
        let error = v1::Error {
            code: self.code,
            msg: cut(&self.msg, MOST_OF_MSG).into_owned(),
            details: cut(&self.details, MOST_OF_DETAILS).into_owned(),
        };
        let detail =
            Any { type_url: format!("{TYPES}{}", v1::Error::full_name()), value: error.encode_to_vec() };
        let (code, summary) = (nearest(self.code), cut(&self.msg, MOST_OF_SUMMARY));
        let rich = RichStatus { code: code.into(), message: summary.to_string(), details: vec![detail] };
        Status::with_details(code, summary, rich.encode_to_vec().into())
    }

    /// The error of CNI in a status; `None` if the call failed by something else (the transport, a deadline).
    ///
    /// # Errors
    /// The details cannot be read.
    pub fn of_status(status: &Status) -> Result<Option<Self>, DetailError> {
        let rich = RichStatus::decode(status.details()).map_err(DetailError::Status)?;
        let name = v1::Error::full_name();
        // The part before the last slash is the host's own choice (google/protobuf/any.proto).
        let is_error = |any: &&Any| any.type_url.rsplit('/').next() == Some(name.as_str());
        let Some(any) = rich.details.iter().find(is_error) else { return Ok(None) };
        let error = v1::Error::decode(any.value.as_slice()).map_err(DetailError::Error)?;
        Ok(Some(Self { code: error.code, msg: error.msg, details: error.details }))
    }
}

/// A text in `most` bytes, with a mark where it was cut.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let mark = format!("… (cut: {} bytes)", text.len());
    let end = text.floor_char_boundary(most.saturating_sub(mark.len()));
    (text[..end].to_owned() + &mark).into()
}

/// A text as it is logged.
pub(crate) fn logged(text: &str) -> Cow<'_, str> {
    cut(text, MOST_OF_LOG)
}

/// The code of gRPC for one of CNI.
fn nearest(code: u32) -> Code {
    match code {
        1 | 2 | 100 | 105 => Code::Unimplemented,
        3 => Code::NotFound,
        4 | 6 | 7 | 8 => Code::InvalidArgument,
        11 | 50 | 51 => Code::Unavailable,
        101 | 103 => Code::ResourceExhausted,
        102 | 106 => Code::AlreadyExists,
        104 => Code::FailedPrecondition,
        _ => Code::Internal,
    }
}
