//! Attributes: length, type and value, the next one at a multiple of four bytes (`struct nlattr`, linux/netlink.h).

/// Bytes of length and type, in the host's order.
const HEADER: usize = 4;

/// What attributes begin at multiples of (`NLA_ALIGNTO`).
const ALIGN: usize = 4;

/// One attribute, padded. `value` is at most 65,531 bytes long; a longer one cannot be said.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = HEADER + value.len();
    let mut bytes = Vec::with_capacity(length.next_multiple_of(ALIGN));
    bytes.extend(u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(length.next_multiple_of(ALIGN), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::super::socket;
    use super::*;

    #[test]
    fn what_is_written_is_read_back_in_order() {
        let message =
            [attribute(1, b""), attribute(2, b"a"), attribute(3, b"four"), attribute(4, b"fives")].concat();
        let mut read = Vec::new();
        socket::attributes(&message, |kind, value| read.push((kind, value.to_vec())));
        let expected = [(1, &b""[..]), (2, b"a"), (3, b"four"), (4, b"fives")];
        assert_eq!(read, expected.map(|(kind, value)| (kind, value.to_vec())));
    }
}
