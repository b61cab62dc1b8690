//! The steps of a rule: each loads into, compares or changes register 1 (linux/netfilter/nf_tables.h).

use super::attribute::Attributes;
use super::prefix::Prefix;

const LIST_ELEM: u16 = 1;
const EXPR_NAME: u16 = 1;
const EXPR_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const REGISTER: u32 = 1;

const META_DREG: u16 = 1;
const META_KEY: u16 = 2;
const META_NFPROTO: u32 = 15;

const CMP_SREG: u16 = 1;
const CMP_OP: u16 = 2;
const CMP_DATA: u16 = 3;

const PAYLOAD_DREG: u16 = 1;
const PAYLOAD_BASE: u16 = 2;
const PAYLOAD_OFFSET: u16 = 3;
const PAYLOAD_LEN: u16 = 4;
const NETWORK_HEADER: u32 = 1;

const BITWISE_SREG: u16 = 1;
const BITWISE_DREG: u16 = 2;
const BITWISE_LEN: u16 = 3;
const BITWISE_MASK: u16 = 4;
const BITWISE_XOR: u16 = 5;

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
    pub(super) fn address(self, side: Side, comparison: Comparison, prefix: &Prefix) -> Self {
        let network = prefix.network();
        let offset = match (prefix.is_v4(), side) {
            (true, Side::Source) => 12,
            (true, Side::Destination) => 16,
            (false, Side::Source) => 8,
            (false, Side::Destination) => 24,
        };
        let length = u32::try_from(network.len()).unwrap_or(u32::MAX);
        let load = Attributes::default()
            .number(PAYLOAD_DREG, REGISTER)
            .number(PAYLOAD_BASE, NETWORK_HEADER)
            .number(PAYLOAD_OFFSET, offset)
            .number(PAYLOAD_LEN, length);
        let mask = Attributes::default()
            .number(BITWISE_SREG, REGISTER)
            .number(BITWISE_DREG, REGISTER)
            .number(BITWISE_LEN, length)
            .nest(BITWISE_MASK, value(&prefix.mask()))
            .nest(BITWISE_XOR, value(&vec![0; network.len()]));
        self.step("payload", load).step("bitwise", mask).compare(comparison, &network)
    }

    /// Gives the packet the address of the interface that it leaves by.
    pub(super) fn masquerade(self) -> Self {
        self.step("masq", Attributes::default())
    }

    /// All of them.
    pub(super) fn into_attributes(self) -> Attributes {
        self.0
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

fn value(bytes: &[u8]) -> Attributes {
    Attributes::default().bytes(DATA_VALUE, bytes)
}
