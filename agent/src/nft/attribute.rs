//! Netlink attributes of nf_tables: nested, and with numbers in network order (linux/netfilter/nf_tables.h).

use shunt_netlink::attribute::attribute;

const NESTED: u16 = 1 << 15;

/// Attributes, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Attributes(Vec<u8>);

impl Attributes {
    /// Adds one with these bytes as value.
    pub(super) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        self.0.extend(attribute(kind, value));
        self
    }

    /// Adds one with a text as value, and the zero behind it that the kernel wants.
    pub(super) fn text(self, kind: u16, value: &str) -> Self {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// Adds one with a number as value.
    pub(super) fn number(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Adds one that holds others.
    pub(super) fn nest(self, kind: u16, inner: Self) -> Self {
        self.bytes(kind | NESTED, &inner.0)
    }

    /// All of them.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
