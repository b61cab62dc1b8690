//! Values of a configuration together with their path, so that an error can name the key.

use std::net::IpAddr;

use serde_json::Value;

use super::{error::Error, fault::Fault};

/// A value that is present, and where it stands, such as `ipam.ranges[0]`.
#[derive(Clone)]
pub(super) struct Located<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Located<'a> {
    /// A value that may be absent: `null` is.
    pub(super) fn new(value: &'a Value, path: impl Into<String>) -> Option<Self> {
        (!value.is_null()).then(|| Self { value, path: path.into() })
    }

    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    /// Blames this value.
    pub(super) fn fault(&self, fault: Fault) -> Error {
        Error::InvalidConfig { key: self.path.clone(), fault }
    }

    /// Blames the key of this range object that the fault is about.
    pub(super) fn range_fault(&self, fault: Fault) -> Error {
        Error::InvalidConfig { key: format!("{}{}", self.path, fault.range_key()), fault }
    }

    /// A key of this object, unless it is absent.
    pub(super) fn get(&self, key: &str) -> Option<Located<'a>> {
        Located::new(self.value.get(key)?, format!("{}.{key}", self.path))
    }

    /// A text under a key of this object; an empty one is absent, as it is to host-local.
    pub(super) fn text(&self, key: &str) -> Result<Option<(Located<'a>, &'a str)>, Error> {
        let Some(located) = self.get(key) else {
            return Ok(None);
        };
        match located.value.as_str() {
            Some("") => Ok(None),
            Some(text) => Ok(Some((located, text))),
            None => Err(located.fault(Fault::Type("a string"))),
        }
    }

    /// An address under a key of this object; IPv4 in IPv6's spelling becomes IPv4.
    pub(super) fn address(&self, key: &str) -> Result<Option<IpAddr>, Error> {
        let Some((located, text)) = self.text(key)? else {
            return Ok(None);
        };
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Some(address.to_canonical())),
            Err(_) => Err(located.fault(Fault::NotAnAddress(text.to_owned()))),
        }
    }

    /// The elements of this array.
    pub(super) fn elements(&self) -> Result<Vec<Located<'a>>, Error> {
        let Some(elements) = self.value.as_array() else {
            return Err(self.fault(Fault::Type("an array")));
        };
        let located = |(index, value)| Located { value, path: format!("{}[{index}]", self.path) };
        Ok(elements.iter().enumerate().map(located).collect())
    }
}
