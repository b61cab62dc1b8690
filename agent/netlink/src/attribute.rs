//! Attributes that the crates have no types for: length, type and value, aligned to four bytes (`struct nlattr`, linux/netlink.h).

use netlink_packet_core::{
    DefaultNla, Emitable, NLA_F_NESTED, NLA_HEADER_SIZE, NlaBuffer, NlasIterator, Parseable,
};

/// The bytes of one attribute, padded.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    emitted(&DefaultNla::new(kind, value.to_vec()))
}

/// The bytes of one attribute that holds others.
pub fn nested(kind: u16, inner: &[u8]) -> Vec<u8> {
    attribute(kind | NLA_F_NESTED, inner)
}

/// What the crates' types emit.
pub(crate) fn emitted(message: &impl Emitable) -> Vec<u8> {
    let mut bytes = vec![0; message.buffer_len()];
    message.emit(&mut bytes);
    bytes
}

/// The attributes in `bytes`, up to the first that is malformed.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = NlaBuffer<&[u8]>> {
    NlasIterator::new(bytes).map_while(Result::ok)
}

/// The attributes in `bytes` as the crates read them. One that they cannot read is skipped: an attribute of a kernel to come
/// must not fail a request.
pub(crate) fn typed<'a, A: Parseable<NlaBuffer<&'a [u8]>>>(bytes: &'a [u8]) -> impl Iterator<Item = A> {
    attributes(bytes).filter_map(|attribute| A::parse(&attribute).ok())
}

/// The attribute as its bytes, for one that only has to be passed on.
pub(crate) fn verbatim(attribute: &NlaBuffer<&[u8]>) -> DefaultNla {
    let nested = if attribute.nested_flag() { NLA_F_NESTED } else { 0 };
    DefaultNla::new(attribute.kind() | nested, attribute.value().to_vec())
}

/// The value of the first attribute of this kind.
pub(crate) fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    let found = attributes(bytes).find(|attribute| attribute.kind() == kind)?;
    let length = usize::from(found.length());
    found.into_inner().get(NLA_HEADER_SIZE..length)
}

/// A value as a number in the host's order.
pub fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_ne_bytes)
}

/// A value as text, without the zero behind it.
pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_in_order() {
        let message =
            [attribute(1, b""), attribute(2, b"a"), attribute(3, b"four"), nested(4, b"fives")].concat();
        let read: Vec<_> = attributes(&message).map(|one| (one.kind(), one.value().to_vec())).collect();
        let expected = [(1, &b""[..]), (2, b"a"), (3, b"four"), (4, b"fives")];
        assert_eq!(read, expected.map(|(kind, value)| (kind, value.to_vec())));
        assert_eq!(find(&message, 3), Some(&b"four"[..]));
        assert_eq!(find(&message, 5), None);
    }

    #[test]
    fn an_attribute_passed_on_verbatim_keeps_its_nested_flag() {
        let bytes = nested(7, &attribute(1, b"abcd"));
        let read = attributes(&bytes).next().unwrap();
        assert_eq!(emitted(&verbatim(&read)), bytes);
    }
}
