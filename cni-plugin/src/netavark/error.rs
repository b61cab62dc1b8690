//! Why a request of netavark's is not served.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::error::Error;

/// A request cannot be served. The text is what podman shows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetavarkError {
    /// The input is no JSON of the interface.
    #[error("the request cannot be read: `{key}`: {why}")]
    Json { key: String, why: String },
    /// `setup` or `teardown` without its second argument.
    #[error("the path of the container's namespace is missing: it is the argument after the verb")]
    NoNamespace,
    /// An option, or a field, with a value that cannot be meant.
    #[error("`{key}`: {why}")]
    Invalid { key: String, why: String },
    /// What netavark's own driver can do and this one cannot.
    #[error("`{key}` is not served by the driver shunt: {cure}")]
    NotServed { key: String, cure: &'static str },
    /// An option of nobody's.
    #[error("`{0}` is no option of the driver shunt; it takes {1}")]
    UnknownOption(String, String),
    /// The network has no subnet for an address of the container's.
    #[error("`static_ips`: {0} is in none of the network's subnets")]
    NoSubnet(IpAddr),
    /// The network has subnets, and netavark gave no address.
    #[error("`static_ips`: no address was given, and the network has subnets")]
    NoAddress,
    /// A gateway that is not in its subnet.
    #[error("`subnets`: the gateway {gateway} is not an address of {subnet}")]
    Gateway { gateway: IpAddr, subnet: IpNet },
    /// What the same procedure says to a CNI runtime.
    #[error("{0}")]
    Call(Box<Error>),
}

impl From<Error> for NetavarkError {
    fn from(error: Error) -> Self {
        Self::Call(Box::new(error))
    }
}

impl NetavarkError {
    /// One text, with what was left behind where something was.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Call(error) => {
                let left = match &**error {
                    Error::HalfUndone { leftovers, .. } => &leftovers[..],
                    _ => &[],
                };
                let left: String =
                    left.iter().map(|left| format!("; left behind, because: {left}")).collect();
                format!("{error} (code {}){left}", error.code())
            }
            other => other.to_string(),
        }
    }
}

/// A value that cannot be meant.
pub(super) fn invalid(key: &str, why: impl Into<String>) -> NetavarkError {
    NetavarkError::Invalid { key: key.to_owned(), why: why.into() }
}
