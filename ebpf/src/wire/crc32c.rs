//! SCTP's checksum (CRC32c, RFC 9260 appendix A) after a change of its ports, without the rest of the packet.
//!
//! A CRC is linear: the checksums of two packets of one length differ by the remainder of their difference. The ports are
//! the first four bytes, so the difference is those four bytes' with zeros behind them, and zeros are a multiplication by a
//! power of x modulo the polynomial. Addresses are not covered.
//!
//! Polynomials are reflected: x⁰ is the highest bit, and the field in the packet, read with the lowest byte first, is
//! the remainder as it stands here.

/// CRC32c's polynomial without x³².
const POLYNOMIAL: u64 = 0x82f6_3b78;

/// x⁸: one byte further.
const BYTE: u32 = 1 << (31 - 8);

/// Bits of a length: an IP packet has fewer than 2¹⁶ bytes.
const LENGTH_BITS: usize = 16;

/// Bytes of the two ports.
const PORTS_BYTES: u32 = 4;

/// The checksum field after the ports have changed, both ports and the field read with the lowest byte first.
/// `behind` is how many bytes of the SCTP packet follow the ports; less than 2¹⁶.
///
/// Zero stays: a packet of this machine's own carries no checksum yet when its device is to compute it
/// (`CHECKSUM_PARTIAL`), and Linux leaves zero there. One true checksum in 2³² is zero as well, and that packet is lost.
#[inline(always)]
pub const fn updated(checksum: u32, old_ports: u32, new_ports: u32, behind: u32) -> u32 {
    updated_by(checksum, old_ports ^ new_ports, behind)
}

/// The same, with the old and the new ports XORed.
#[inline(always)]
pub const fn updated_by(checksum: u32, ports: u32, behind: u32) -> u32 {
    if checksum == 0 {
        return 0;
    }
    // Wraps for an IP header that claims to be the end of its packet: such a packet has no right checksum.
    checksum ^ moved(ports, behind.wrapping_add(PORTS_BYTES))
}

/// `remainder` with `bytes` zero bytes behind it, by repeated squaring. Verifier: no branches, or every length is followed. In words of 64
/// bits, BPF's only ones, of which the upper half is unused.
#[inline(always)]
const fn moved(remainder: u32, bytes: u32) -> u32 {
    let (mut moved, mut step, mut n) = (remainder as u64, BYTE as u64, 0);
    while n < LENGTH_BITS {
        let (further, squared) = products(moved, step);
        let mask = 0u64.wrapping_sub((bytes as u64 >> n) & 1);
        moved ^= (moved ^ further) & mask;
        step = squared;
        n += 1;
    }
    moved as u32
}

/// `one` and `step`, each multiplied by `step`, modulo the polynomial.
#[inline(always)]
const fn products(one: u64, step: u64) -> (u64, u64) {
    let (mut product, mut square) = (0, 0);
    let (mut one, mut other, mut shifted, mut bit) = (one, step, step, 0);
    while bit < 32 {
        product ^= shifted & 0u64.wrapping_sub((one >> 31) & 1);
        square ^= shifted & 0u64.wrapping_sub((other >> 31) & 1);
        shifted = (shifted >> 1) ^ (POLYNOMIAL & 0u64.wrapping_sub(shifted & 1));
        one <<= 1;
        other <<= 1;
        bit += 1;
    }
    (product, square)
}
