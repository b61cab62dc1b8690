//! SCTP's checksum (CRC32c, RFC 9260 appendix A) after a change of its ports, without the rest of the packet.
//!
//! A CRC is linear: the checksums of two packets of one length differ by the remainder of their difference. The ports are
//! the first four bytes, so the difference is those four bytes' with zeros behind them, and zeros are a multiplication by a
//! power of x modulo the polynomial. Addresses are not covered.
//!
//! Polynomials are reflected: x⁰ is the highest bit, and the field in the packet, read with the lowest byte first, is
//! the remainder as it stands here.

/// CRC32c's polynomial without x³².
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// x⁸: one byte further.
const BYTE: u32 = 1 << (31 - 8);

/// Bits of a length: an IP packet has fewer than 2¹⁶ bytes.
const LENGTH_BITS: usize = 16;

/// Bytes of the two ports.
const PORTS_BYTES: u32 = 4;

/// x to the power of 8 · 2ⁿ: 2ⁿ bytes further.
const STEPS: [u32; LENGTH_BITS] = {
    let mut steps = [BYTE; LENGTH_BITS];
    let mut n = 1;
    while n < LENGTH_BITS {
        steps[n] = multiply(steps[n - 1], steps[n - 1]);
        n += 1;
    }
    steps
};

/// The checksum field after the ports have changed, both ports and the field read with the lowest byte first.
/// `behind` is how many bytes of the SCTP packet follow the ports; less than 2¹⁶.
///
/// Zero stays: a packet of this machine's own carries no checksum yet when its device is to compute it
/// (`CHECKSUM_PARTIAL`), and Linux leaves zero there. One true checksum in 2³² is zero as well, and that packet is lost.
#[inline(always)]
pub const fn updated(checksum: u32, old_ports: u32, new_ports: u32, behind: u32) -> u32 {
    if checksum == 0 {
        return 0;
    }
    checksum ^ moved(old_ports ^ new_ports, behind + PORTS_BYTES)
}

/// `remainder` with so many bytes of zeros behind it.
#[inline(always)]
const fn moved(remainder: u32, bytes: u32) -> u32 {
    let mut remainder = remainder;
    let mut n = 0;
    while n < LENGTH_BITS {
        if (bytes >> n) & 1 == 1 {
            remainder = multiply(remainder, STEPS[n]);
        }
        n += 1;
    }
    remainder
}

/// The product modulo the polynomial.
#[inline(always)]
const fn multiply(one: u32, other: u32) -> u32 {
    let (mut product, mut shifted, mut bit) = (0, other, 32);
    while bit > 0 {
        bit -= 1;
        // Masks and not branches: the verifier would walk both sides of each.
        product ^= shifted & 0u32.wrapping_sub((one >> bit) & 1);
        shifted = (shifted >> 1) ^ (POLYNOMIAL & 0u32.wrapping_sub(shifted & 1));
    }
    product
}
