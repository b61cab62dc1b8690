//! Limits of some subnets only, as the question that the queue asks of every packet: a program for the kernel's classic BPF
//! (`struct sock_filter`, linux/filter.h).
//!
//! The address that is asked for is the other end's: the source of what goes to the container, the destination of what
//! it sends. Of frames that are neither IPv4 nor IPv6 none is in any subnet.

use std::net::IpAddr;

use shunt_agent_api::Bandwidth;

use ipnet::IpNet;

/// Subnets that one list may have: a program has 4096 instructions at most (`BPF_MAXINSNS`), and one of IPv6 takes 13.
pub const MAX_SUBNETS: usize = 256;

/// Whose traffic is limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subnets {
    /// The subnets.
    pub prefixes: Vec<IpNet>,
    /// Whether they are what is limited, or what is not.
    pub limited: bool,
}

impl Subnets {
    /// What a limit names; none if it is one of all traffic. Texts that are no prefixes were refused before.
    pub fn of(bandwidth: &Bandwidth) -> Option<Self> {
        let limited = !bandwidth.shaped.is_empty();
        let texts = if limited { &bandwidth.shaped } else { &bandwidth.unshaped };
        let prefixes: Vec<_> = texts.iter().filter_map(|text| text.parse().ok()).collect();
        (!prefixes.is_empty()).then_some(Self { prefixes, limited })
    }

    /// As [`Self::of`], where there is a limit of what the container sends.
    pub fn of_sent(bandwidth: &Bandwidth) -> Option<Self> {
        bandwidth.egress.and_then(|_| Self::of(bandwidth))
    }

    /// The program that answers `limited` for a packet that is limited, and `free` for one that is not. A packet that cannot
    /// be read is answered 0.
    pub fn program(&self, end: End, limited: u32, free: u32) -> Vec<Instruction> {
        let (inside, outside) = if self.limited { (limited, free) } else { (free, limited) };
        let mut parts = [true, false].map(|v4| {
            let own = self.prefixes.iter().filter(|prefix| prefix.addr().is_ipv4() == v4);
            let mut part: Vec<_> = own.flat_map(|prefix| test(prefix, end, inside)).collect();
            part.push(give(outside));
            part
        });
        let v4_length = u32::try_from(parts[0].len()).unwrap_or(u32::MAX);
        let mut program = vec![
            load(PROTOCOL),
            unless(0x0800, 1),
            jump(3),
            unless(0x86dd, 1),
            jump(1 + v4_length),
            give(outside),
        ];
        program.append(&mut parts[0]);
        program.append(&mut parts[1]);
        program
    }
}

/// Which end of a packet is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Who has sent it.
    Source,
    /// Who is to get it.
    Destination,
}

/// One instruction (`struct sock_filter`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

impl Instruction {
    /// As the kernel reads it.
    pub fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&self.code.to_ne_bytes());
        bytes[2..4].copy_from_slice(&[self.if_true, self.if_false]);
        bytes[4..].copy_from_slice(&self.value.to_ne_bytes());
        bytes
    }
}

/// `SKF_AD_OFF + SKF_AD_PROTOCOL`, and `SKF_NET_OFF`: where the frame's type and its network header are to be found.
const PROTOCOL: u32 = 0xffff_f000;
const NETWORK: u32 = 0xfff0_0000;

/// A big-endian word of the packet into the accumulator (`BPF_LD | BPF_W | BPF_ABS`).
const fn load(at: u32) -> Instruction {
    Instruction { code: 0x20, if_true: 0, if_false: 0, value: at }
}

/// Only these bits of the accumulator (`BPF_ALU | BPF_AND | BPF_K`).
const fn mask(bits: u32) -> Instruction {
    Instruction { code: 0x54, if_true: 0, if_false: 0, value: bits }
}

/// Goes past so many instructions unless the accumulator is this (`BPF_JMP | BPF_JEQ | BPF_K`).
const fn unless(value: u32, past: u8) -> Instruction {
    Instruction { code: 0x15, if_true: 0, if_false: past, value }
}

/// Goes past so many instructions (`BPF_JMP | BPF_JA`).
const fn jump(past: u32) -> Instruction {
    Instruction { code: 0x05, if_true: 0, if_false: 0, value: past }
}

/// The answer (`BPF_RET | BPF_K`).
const fn give(answer: u32) -> Instruction {
    Instruction { code: 0x06, if_true: 0, if_false: 0, value: answer }
}

/// Answers `inside` if the address is in the subnet, and goes on behind itself if it is not.
fn test(prefix: &IpNet, end: End, inside: u32) -> Vec<Instruction> {
    let (octets, at) = match (prefix.addr(), end) {
        (IpAddr::V4(address), End::Source) => (address.octets().to_vec(), 12),
        (IpAddr::V4(address), End::Destination) => (address.octets().to_vec(), 16),
        (IpAddr::V6(address), End::Source) => (address.octets().to_vec(), 8),
        (IpAddr::V6(address), End::Destination) => (address.octets().to_vec(), 24),
    };
    let words = octets.chunks_exact(4).zip((0u32..).step_by(4)).filter_map(|(octets, offset)| {
        let bits = u32::from(prefix.prefix_len()).saturating_sub(offset * 8).min(32);
        let kept = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        let word = octets.iter().fold(0, |word, octet| word << 8 | u32::from(*octet));
        (bits > 0).then_some((NETWORK + at + offset, kept, word & kept))
    });
    let words: Vec<_> = words.collect();
    let mut behind = u8::try_from(words.len() * 3 + 1).unwrap_or(u8::MAX);
    let mut instructions = Vec::new();
    for (at, kept, word) in words {
        behind -= 3;
        instructions.extend([load(at), mask(kept), unless(word, behind)]);
    }
    instructions.push(give(inside));
    instructions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program answers to a packet of this type with these bytes from its network header on.
    fn run(program: &[Instruction], protocol: u32, packet: &[u8]) -> u32 {
        let (mut at, mut word) = (0, 0);
        loop {
            let Instruction { code, if_false, value, .. } = program[at];
            at += 1;
            match code {
                0x20 if value == PROTOCOL => word = protocol,
                0x20 => {
                    let from = (value - NETWORK) as usize;
                    let Some(bytes) = packet.get(from..from + 4) else { return 0 };
                    word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
                }
                0x54 => word &= value,
                0x15 if word != value => at += usize::from(if_false),
                0x15 => {}
                0x05 => at += value as usize,
                0x06 => return value,
                other => panic!("{other:#x}"),
            }
        }
    }

    const LIMITED: u32 = 7;
    const FREE: u32 = 9;

    fn answer(subnets: &[&str], limited: bool, to: &str) -> u32 {
        let prefixes = subnets.iter().map(|text| text.parse().unwrap()).collect();
        let program = Subnets { prefixes, limited }.program(End::Destination, LIMITED, FREE);
        let packet = match to.parse().unwrap() {
            IpAddr::V4(to) => [&[0; 16][..], &to.octets()].concat(),
            IpAddr::V6(to) => [&[0; 24][..], &to.octets()].concat(),
        };
        run(&program, if packet.len() == 20 { 0x0800 } else { 0x86dd }, &packet)
    }

    #[test]
    fn an_address_is_in_a_subnet_by_the_bits_of_its_prefix() {
        let subnets = ["10.1.0.0/16", "192.0.2.7/32", "fd00:1::/33", "fd00:2::1/128"];
        for (to, inside) in [
            ("10.1.255.255", true),
            ("10.2.0.0", false),
            ("192.0.2.7", true),
            ("192.0.2.6", false),
            ("fd00:1:7fff::1", true),
            ("fd00:1:8000::1", false),
            ("fd00:2::1", true),
            ("fd00:2::2", false),
        ] {
            assert_eq!(answer(&subnets, true, to), if inside { LIMITED } else { FREE }, "{to}");
            assert_eq!(answer(&subnets, false, to), if inside { FREE } else { LIMITED }, "{to}");
        }
    }

    #[test]
    fn a_prefix_of_no_bits_is_every_address_of_its_family() {
        assert_eq!(answer(&["0.0.0.0/0"], false, "203.0.113.9"), FREE);
        assert_eq!(answer(&["0.0.0.0/0"], false, "fd00::1"), LIMITED);
    }

    #[test]
    fn the_largest_list_fits_into_a_program_and_its_last_subnet_counts() {
        let prefixes: Vec<IpNet> =
            (0..MAX_SUBNETS).map(|number| format!("fd00::{number:x}/128").parse().unwrap()).collect();
        let program = Subnets { prefixes, limited: true }.program(End::Source, LIMITED, FREE);
        assert!(program.len() <= 4096, "{}", program.len());
        let last: std::net::Ipv6Addr = format!("fd00::{:x}", MAX_SUBNETS - 1).parse().unwrap();
        let packet = [&[0; 8][..], &last.octets()].concat();
        assert_eq!(run(&program, 0x86dd, &packet), LIMITED);
        // ARP is in no subnet, and what is cut is left to the queue's default.
        assert_eq!((run(&program, 0x0806, &packet), run(&program, 0x86dd, &packet[..20])), (FREE, 0));
    }
}
