//! The CNI protocol around the verbs: the environment, versions, names, and how a failure is said.

mod arguments;
mod caller;
mod environment;
mod failure;
mod names;
mod variables;
mod verb;
mod version;

pub use arguments::{Arguments, ArgumentsError};
pub use environment::{Call, CallError};
pub use failure::Failure;
pub use names::{
    MAX_IDENTIFIER, MAX_INTERFACE_NAME, NameError, check_identifier, check_interface, check_length,
};
pub use variables::IN_SERVICE;
pub use verb::{UnknownVerb, Verb};
pub use version::{UnknownVersion, Version};
