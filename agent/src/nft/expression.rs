//! The steps of a rule: each loads into, compares or uses register 1 (linux/netfilter/nf_tables.h).

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use nix::libc;

use super::attribute::Attributes;
use super::kind::Kind;

const LIST_ELEM: u16 = 1;
const EXPR_NAME: u16 = 1;
const EXPR_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const REGISTER: u32 = 1;
/// The first of the registers of four bytes (`NFT_REG32_00`), of which the first four are [`REGISTER`].
const WORDS: u32 = 8;

const META_DREG: u16 = 1;
const META_KEY: u16 = 2;
const META_SREG: u16 = 3;
const META_PRIORITY: u32 = 2;
const META_NFPROTO: u32 = 15;
const META_L4PROTO: u32 = 16;

const CMP_SREG: u16 = 1;
const CMP_OP: u16 = 2;
const CMP_DATA: u16 = 3;

const PAYLOAD_DREG: u16 = 1;
const PAYLOAD_BASE: u16 = 2;
const PAYLOAD_OFFSET: u16 = 3;
const PAYLOAD_LEN: u16 = 4;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;

const BITWISE_SREG: u16 = 1;
const BITWISE_DREG: u16 = 2;
const BITWISE_LEN: u16 = 3;
const BITWISE_MASK: u16 = 4;
const BITWISE_XOR: u16 = 5;

const FIB_DREG: u16 = 1;
const FIB_RESULT: u16 = 2;
const FIB_FLAGS: u16 = 3;
const FIB_ADDRTYPE: u32 = 3;
const FIB_DESTINATION: u32 = 2;

const LOOKUP_SET: u16 = 1;
const LOOKUP_SREG: u16 = 2;
const LOOKUP_DREG: u16 = 3;

const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
const VERDICT_REGISTER: u32 = 0;

const IMMEDIATE_DREG: u16 = 1;
const IMMEDIATE_DATA: u16 = 2;

const CT_DREG: u16 = 1;
const CT_KEY: u16 = 2;
const CT_DIRECTION: u16 = 3;
const CT_STATUS: u32 = 2;
const CT_PROTO_DST: u32 = 12;
/// `IPS_DST_NAT` (linux/netfilter/nf_conntrack_common.h).
const DESTINATION_TRANSLATED: u32 = 0x20;
/// `IP_CT_DIR_ORIGINAL`.
const ORIGINAL: u8 = 0;

const NAT_TYPE: u16 = 1;
const NAT_FAMILY: u16 = 2;
const NAT_ADDRESS: u16 = 3;
const NAT_PORT: u16 = 5;
const NAT_DESTINATION: u32 = 1;
const PORT_REGISTER: u32 = 2;

/// How a register is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Equal.
    Is = 0,
    /// Not equal.
    IsNot = 1,
}

/// Which address of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Where it comes from.
    Source,
    /// Where it goes.
    Destination,
}

/// What of a packet is looked up in a set of several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// An address of the family.
    Address(Side),
    /// The protocol.
    Protocol,
    /// The port that it goes to.
    Port,
    /// The port that its connection asked for first.
    AskedPort,
}

impl Part {
    /// What of a set's keys it is.
    pub(super) const fn kind(self, is_v4: bool) -> Kind {
        match self {
            Self::Address(_) => Kind::address(is_v4),
            Self::Protocol => Kind::Protocol,
            Self::Port | Self::AskedPort => Kind::Port,
        }
    }
}

/// An address in network order.
pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// The steps of one rule.
#[derive(Debug, Default)]
pub(super) struct Expressions(Attributes);

impl Expressions {
    /// Goes on for packets of this family (`NFPROTO_IPV4`, `NFPROTO_IPV6`).
    pub(super) fn family(self, family: u8) -> Self {
        let load = Attributes::default().number(META_DREG, REGISTER).number(META_KEY, META_NFPROTO);
        self.step("meta", load).compare(Comparison::Is, &[family])
    }

    /// Goes on for packets whose address is, or is not, in a prefix.
    pub(super) fn address(self, side: Side, comparison: Comparison, prefix: &IpNet) -> Self {
        let network = octets(prefix.network());
        let load = load_address(side, prefix.addr().is_ipv4(), REGISTER);
        self.step("payload", load).masked(&octets(prefix.netmask())).compare(comparison, &network)
    }

    /// Goes on for packets whose address is in a set of its family.
    pub(super) fn address_in(self, side: Side, is_v4: bool, set: &str) -> Self {
        let lookup = Attributes::default().text(LOOKUP_SET, set).number(LOOKUP_SREG, REGISTER);
        self.step("payload", load_address(side, is_v4, REGISTER)).step("lookup", lookup)
    }

    /// Gives the packet the priority that a map has for its source address; goes on for those that are in the map.
    pub(super) fn priority_of_source(self, is_v4: bool, map: &str) -> Self {
        let lookup = Attributes::default()
            .text(LOOKUP_SET, map)
            .number(LOOKUP_SREG, REGISTER)
            .number(LOOKUP_DREG, REGISTER);
        let set = Attributes::default().number(META_KEY, META_PRIORITY).number(META_SREG, REGISTER);
        self.step("payload", load_address(Side::Source, is_v4, REGISTER))
            .step("lookup", lookup)
            .step("meta", set)
    }

    /// Goes on for packets of this protocol (IANA "Assigned Internet Protocol Numbers"), extension headers passed.
    pub(super) fn protocol(self, number: u8) -> Self {
        let load = Attributes::default().number(META_DREG, REGISTER).number(META_KEY, META_L4PROTO);
        self.step("meta", load).compare(Comparison::Is, &[number])
    }

    /// Goes on for packets to this port: of TCP, UDP and SCTP the second field of the header.
    pub(super) fn port(self, port: u16) -> Self {
        self.step("payload", load_port(REGISTER)).compare(Comparison::Is, &port.to_be_bytes())
    }

    /// Goes on for packets to an address that the node has, whichever it has by then.
    pub(super) fn for_the_node(self) -> Self {
        let load = Attributes::default()
            .number(FIB_DREG, REGISTER)
            .number(FIB_RESULT, FIB_ADDRTYPE)
            .number(FIB_FLAGS, FIB_DESTINATION);
        // The kernel compares the type as the number that it is, in the order of the machine (`nft_fib_store_result`).
        self.step("fib", load).compare(Comparison::Is, &u32::from(libc::RTN_LOCAL).to_ne_bytes())
    }

    /// Goes on for packets of connections whose destination was translated.
    pub(super) fn redirected(self) -> Self {
        let load = Attributes::default().number(CT_DREG, REGISTER).number(CT_KEY, CT_STATUS);
        let mask = DESTINATION_TRANSLATED.to_ne_bytes();
        self.step("ct", load).masked(&mask).compare(Comparison::IsNot, &[0; 4])
    }

    /// Goes on for packets of which these parts are in a set.
    pub(super) fn parts_in(self, parts: &[Part], is_v4: bool, set: &str) -> Self {
        let lookup = Attributes::default().text(LOOKUP_SET, set).number(LOOKUP_SREG, WORDS);
        self.load(parts, is_v4).step("lookup", lookup)
    }

    /// Leads the packet, and all of its connection, to the address and port that a map has for these parts of it; goes on for what is not in the map.
    pub(super) fn lead_by(self, parts: &[Part], is_v4: bool, map: &str) -> Self {
        let lookup =
            Attributes::default().text(LOOKUP_SET, map).number(LOOKUP_SREG, WORDS).number(LOOKUP_DREG, WORDS);
        let family = if is_v4 { libc::NFPROTO_IPV4 } else { libc::NFPROTO_IPV6 };
        let nat = Attributes::default()
            .number(NAT_TYPE, NAT_DESTINATION)
            .number(NAT_FAMILY, family.unsigned_abs())
            .number(NAT_ADDRESS, WORDS)
            .number(NAT_PORT, WORDS + Kind::address(is_v4).length() / 4);
        self.load(parts, is_v4).step("lookup", lookup).step("nat", nat)
    }

    /// Loads these parts one behind the other, as [`super::named_set::type_of`] has them.
    fn load(self, parts: &[Part], is_v4: bool) -> Self {
        let mut register = WORDS;
        parts.iter().fold(self, |steps, part| {
            let at = register;
            register += part.kind(is_v4).length() / 4;
            let (name, load) = match part {
                Part::Address(side) => ("payload", load_address(*side, is_v4, at)),
                Part::Protocol => {
                    ("meta", Attributes::default().number(META_DREG, at).number(META_KEY, META_L4PROTO))
                }
                Part::Port => ("payload", load_port(at)),
                Part::AskedPort => {
                    let load = Attributes::default().number(CT_DREG, at).number(CT_KEY, CT_PROTO_DST);
                    ("ct", load.bytes(CT_DIRECTION, &[ORIGINAL]))
                }
            };
            steps.step(name, load)
        })
    }

    /// Leads the packet, and all of its connection, there.
    pub(super) fn lead_to(self, to: SocketAddr) -> Self {
        let (family, address) = match to.ip() {
            IpAddr::V4(v4) => (libc::NFPROTO_IPV4, v4.octets().to_vec()),
            IpAddr::V6(v6) => (libc::NFPROTO_IPV6, v6.octets().to_vec()),
        };
        let nat = Attributes::default()
            .number(NAT_TYPE, NAT_DESTINATION)
            .number(NAT_FAMILY, family.unsigned_abs())
            .number(NAT_ADDRESS, REGISTER)
            .number(NAT_PORT, PORT_REGISTER);
        self.immediate(REGISTER, &address).immediate(PORT_REGISTER, &to.port().to_be_bytes()).step("nat", nat)
    }

    /// Gives the packet the address of the interface that it leaves by.
    pub(super) fn masquerade(self) -> Self {
        self.step("masq", Attributes::default())
    }

    /// Ends the chain: what would come behind does not happen to the packet.
    pub(super) fn accept(self) -> Self {
        let verdict = Attributes::default().number(VERDICT_CODE, libc::NF_ACCEPT.unsigned_abs());
        let data = Attributes::default().nest(DATA_VERDICT, verdict);
        let load = Attributes::default().number(IMMEDIATE_DREG, VERDICT_REGISTER).nest(IMMEDIATE_DATA, data);
        self.step("immediate", load)
    }

    /// All of them.
    pub(super) fn into_attributes(self) -> Attributes {
        self.0
    }

    fn immediate(self, register: u32, bytes: &[u8]) -> Self {
        let load = Attributes::default().number(IMMEDIATE_DREG, register).nest(IMMEDIATE_DATA, value(bytes));
        self.step("immediate", load)
    }

    /// Keeps these bits of the register.
    fn masked(self, mask: &[u8]) -> Self {
        let keep = Attributes::default()
            .number(BITWISE_SREG, REGISTER)
            .number(BITWISE_DREG, REGISTER)
            .number(BITWISE_LEN, mask.len() as u32)
            .nest(BITWISE_MASK, value(mask))
            .nest(BITWISE_XOR, value(&vec![0; mask.len()]));
        self.step("bitwise", keep)
    }

    fn compare(self, comparison: Comparison, with: &[u8]) -> Self {
        let compare = Attributes::default()
            .number(CMP_SREG, REGISTER)
            .number(CMP_OP, comparison as u32)
            .nest(CMP_DATA, value(with));
        self.step("cmp", compare)
    }

    fn step(self, name: &str, data: Attributes) -> Self {
        let step = Attributes::default().text(EXPR_NAME, name).nest(EXPR_DATA, data);
        Self(self.0.nest(LIST_ELEM, step))
    }
}

/// Loads the port that a packet goes to.
fn load_port(register: u32) -> Attributes {
    load_payload(TRANSPORT_HEADER, (2, 2), register)
}

/// Loads an address of a packet.
fn load_address(side: Side, is_v4: bool, register: u32) -> Attributes {
    let (offset, length) = match (is_v4, side) {
        (true, Side::Source) => (12, 4),
        (true, Side::Destination) => (16, 4),
        (false, Side::Source) => (8, 16),
        (false, Side::Destination) => (24, 16),
    };
    load_payload(NETWORK_HEADER, (offset, length), register)
}

/// Loads bytes of a packet: where they begin in one of its headers, and how many.
fn load_payload(header: u32, (offset, length): (u32, u32), register: u32) -> Attributes {
    Attributes::default()
        .number(PAYLOAD_DREG, register)
        .number(PAYLOAD_BASE, header)
        .number(PAYLOAD_OFFSET, offset)
        .number(PAYLOAD_LEN, length)
}

pub(super) fn value(bytes: &[u8]) -> Attributes {
    Attributes::default().bytes(DATA_VALUE, bytes)
}
