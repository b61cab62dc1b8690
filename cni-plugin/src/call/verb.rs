//! What a runtime may ask for.

use std::str::FromStr;

use super::version::Version;

/// The value of `CNI_COMMAND`. The last five are not in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Attach a container to the network.
    Add,
    /// Undo an attachment.
    Del,
    /// Compare an attachment with its result.
    Check,
    /// Undo all attachments that are not listed.
    Gc,
    /// Would ADD work?
    Status,
    /// Which versions are spoken?
    Version,
    /// Is the configuration right? Changes nothing.
    Validate,
    /// Make a network ready before its first container.
    Init,
    /// Take down what INIT made, if no container uses it.
    Deinit,
    /// After all ADDs: put right what later plugins disturbed.
    Finalize,
    /// What can be handed out, and what is left?
    Capacity,
}

impl Verb {
    /// Every verb with its name.
    pub const ALL: [(&'static str, Self); 11] = [
        ("ADD", Self::Add),
        ("DEL", Self::Del),
        ("CHECK", Self::Check),
        ("GC", Self::Gc),
        ("STATUS", Self::Status),
        ("VERSION", Self::Version),
        ("VALIDATE", Self::Validate),
        ("INIT", Self::Init),
        ("DEINIT", Self::Deinit),
        ("FINALIZE", Self::Finalize),
        ("CAPACITY", Self::Capacity),
    ];

    /// As it stands in `CNI_COMMAND`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, verb)| *verb == self).map_or("", |(name, _)| name)
    }

    /// The version of the specification that introduced it.
    pub fn since(self) -> Version {
        match self {
            Self::Check | Self::Finalize => Version::V0_4_0,
            Self::Gc | Self::Status => Version::V1_1_0,
            _ => Version::V0_1_0,
        }
    }

    /// The environment variables, beside `CNI_COMMAND`, that it cannot do without.
    pub fn required(self) -> &'static [&'static str] {
        match self {
            Self::Add | Self::Check | Self::Finalize => {
                &["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"]
            }
            Self::Del => &["CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"],
            Self::Gc | Self::Status => &["CNI_PATH"],
            Self::Version | Self::Validate | Self::Init | Self::Deinit | Self::Capacity => &[],
        }
    }
}

/// `CNI_COMMAND` is none of the verbs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown CNI_COMMAND: {0}")]
pub struct UnknownVerb(String);

impl FromStr for Verb {
    type Err = UnknownVerb;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, verb)| *verb)
            .ok_or_else(|| UnknownVerb(text.to_owned()))
    }
}
