//! An updated checksum is the one that a computation over the whole packet gives.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use proptest::prelude::*;
use shunt_dataplane::wire::address::{Address, L4Port};
use shunt_dataplane::wire::checksum::{Change, updated, updated_partial, updated_udp};
use shunt_dataplane::wire::crc32c;

/// The one's complement sum of bytes, half words as they stand in memory (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(u16::from_ne_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The remainder bit by bit (RFC 9260 appendix A).
fn crc32c_of(bytes: &[u8]) -> u32 {
    let mut remainder = u32::MAX;
    for byte in bytes {
        remainder ^= u32::from(*byte);
        for _ in 0..8 {
            remainder = if remainder & 1 == 1 { (remainder >> 1) ^ 0x82f6_3b78 } else { remainder >> 1 };
        }
    }
    !remainder
}

/// Two ends of one family, as the pseudo header of `protocol` has them.
#[derive(Clone, Debug)]
struct Ends {
    source: Vec<u8>,
    destination: Vec<u8>,
    ports: [u16; 2],
}

impl Ends {
    fn addresses(&self) -> [Address; 2] {
        [&self.source, &self.destination].map(|bytes| {
            let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
            match bytes.len() {
                4 => Address::from_v4([half(0), half(2)]),
                _ => Address::from_v6(std::array::from_fn(|n| half(2 * n))),
            }
        })
    }

    fn pseudo_header(&self, protocol: u8, bytes: usize) -> Vec<u8> {
        let length = (bytes as u32).to_be_bytes();
        [&self.source[..], &self.destination, &length, &[0, 0, 0, protocol]].concat()
    }

    /// The transport header's first bytes, then `rest`, in which the checksum is zero.
    fn segment(&self, rest: &[u8]) -> Vec<u8> {
        [&self.ports[0].to_be_bytes()[..], &self.ports[1].to_be_bytes(), rest].concat()
    }

    fn full(&self, protocol: u8, rest: &[u8]) -> u16 {
        let segment = self.segment(rest);
        !sum(&[self.pseudo_header(protocol, segment.len()), segment].concat())
    }

    fn addresses_changed(&self, new: &Self) -> Change {
        let ([a, b], [c, d]) = (self.addresses(), new.addresses());
        Change::NONE.address(a, c).address(b, d)
    }

    fn all_changed(&self, new: &Self) -> Change {
        let ports = |n: usize| (L4Port::from(self.ports[n]), L4Port::from(new.ports[n]));
        let ((a, c), (b, d)) = (ports(0), ports(1));
        self.addresses_changed(new).port(a, c).port(b, d)
    }
}

/// Addresses and ports in which zeros and ones, the two zeros of one's complement, are not rare.
fn bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(0xff), any::<u8>()];
    prop::collection::vec(byte, length)
}

fn ends(length: usize) -> impl Strategy<Value = Ends> {
    let port = || prop_oneof![Just(0u16), Just(0xffff), any::<u16>()];
    (bytes(length), bytes(length), [port(), port()]).prop_map(|(source, destination, ports)| Ends {
        source,
        destination,
        ports,
    })
}

fn two_ends() -> impl Strategy<Value = (Ends, Ends)> {
    prop_oneof![(ends(4), ends(4)), (ends(16), ends(16))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn an_ipv4_header_keeps_a_right_checksum(
        (old, new) in (ends(4), ends(4)), lives in any::<[u8; 2]>(), length in any::<u16>(),
    ) {
        let header = |ends: &Ends, lives: u8| {
            let [a, b] = length.to_be_bytes();
            [&[0x45, 0, a, b, 1, 2, 0x40, 0, lives, 6, 0, 0][..], &ends.source, &ends.destination].concat()
        };
        let lives_word = |lives: u8| u16::from_ne_bytes([lives, 6]);
        let change = old.addresses_changed(&new).half(lives_word(lives[0]), lives_word(lives[1]));
        let before = !sum(&header(&old, lives[0]));
        prop_assert_eq!(updated(before, change), !sum(&header(&new, lives[1])));
    }

    #[test]
    fn a_tcp_segment_keeps_a_right_checksum((old, new) in two_ends(), rest in bytes(21)) {
        prop_assert_eq!(updated(old.full(6, &rest), old.all_changed(&new)), new.full(6, &rest));
    }

    #[test]
    fn a_udp_datagram_keeps_a_right_checksum((old, new) in two_ends(), rest in bytes(9)) {
        let sent = |checksum| if checksum == 0 { 0xffff } else { checksum };
        let before = sent(old.full(17, &rest));
        prop_assert_eq!(updated_udp(before, old.all_changed(&new)), sent(new.full(17, &rest)));
    }

    #[test]
    fn a_udp_checksum_that_comes_out_as_zero_is_sent_as_all_ones(before in 1..=u16::MAX) {
        // The complement's complement makes the sum all ones.
        prop_assert_eq!(updated_udp(before, Change::NONE.half(0xffff, before)), 0xffff);
    }

    #[test]
    fn a_udp_datagram_without_checksum_stays_without((old, new) in two_ends()) {
        prop_assert_eq!(updated_udp(0, old.all_changed(&new)), 0);
    }

    #[test]
    fn a_checksum_left_to_the_device_comes_out_right((old, new) in two_ends(), rest in bytes(17)) {
        let length = old.segment(&rest).len();
        let field = updated_partial(sum(&old.pseudo_header(6, length)), old.addresses_changed(&new));
        // The device sums what is in the packet by then, with the field in its place.
        let finished = !sum(&[&field.to_ne_bytes()[..], &new.segment(&rest)].concat());
        prop_assert_eq!(finished, new.full(6, &rest));
    }

    #[test]
    fn a_difference_is_the_change_folded_to_a_word((old, new) in two_ends()) {
        let change = old.all_changed(&new);
        let word = change.difference().to_ne_bytes();
        prop_assert_eq!(updated(0x1234, change), updated(0x1234, Change::NONE.half(0xffff, sum(&word))));
    }

    #[test]
    fn a_change_and_its_inverse_leave_the_checksum((old, new) in two_ends(), rest in bytes(21)) {
        let before = old.full(6, &rest);
        let after = updated(before, old.all_changed(&new));
        prop_assert_eq!(updated(after, new.all_changed(&old)), before);
    }
}

/// An SCTP packet of `behind` bytes after its ports, with zeros for the checksum.
fn sctp(ports: [u8; 4], behind: &[u8]) -> Vec<u8> {
    let mut packet = [&ports[..], behind].concat();
    packet[8..12].fill(0);
    packet
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn an_sctp_packet_keeps_a_right_checksum(
        old in any::<[u8; 4]>(), new in any::<[u8; 4]>(), behind in prop::collection::vec(any::<u8>(), 8..3000),
    ) {
        let before = crc32c_of(&sctp(old, &behind));
        prop_assume!(before != 0);
        let [old, new_ports] = [old, new].map(u32::from_le_bytes);
        let after = crc32c::updated(before, old, new_ports, behind.len() as u32);
        prop_assert_eq!(after, crc32c_of(&sctp(new, &behind)));
    }
}

#[test]
fn the_longest_sctp_packet_keeps_a_right_checksum() {
    let behind = vec![0xa5; 65_535 - 20 - 4];
    let before = crc32c_of(&sctp([1, 2, 3, 4], &behind));
    let [old, new] = [[1, 2, 3, 4], [1, 2, 0, 80]].map(u32::from_le_bytes);
    let after = crc32c::updated(before, old, new, behind.len() as u32);
    assert_eq!(after, crc32c_of(&sctp([1, 2, 0, 80], &behind)));
}

/// An IP header may say that its packet ends in front of the ports.
#[test]
fn a_packet_shorter_than_its_ports_is_summed_as_one_of_no_bytes() {
    assert_eq!(crc32c::updated(7, 0, 1, 0u32.wrapping_sub(4)), 7 ^ 1);
}

#[test]
fn the_full_crc32c_of_these_tests_gives_the_known_value() {
    assert_eq!(crc32c_of(b"123456789"), 0xe306_9283);
}

#[test]
fn an_sctp_packet_whose_device_is_to_compute_the_checksum_is_left_without() {
    assert_eq!(crc32c::updated(0, 0x0102_0304, 0x0405_0607, 100), 0);
}
