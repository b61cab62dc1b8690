//! A flow's key: the same for both of its directions.

use crate::abi::FlowKey;
use crate::address::{Address, L4Port};

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Its address.
    pub address: Address,
    /// Its port; 0 where the protocol has none, an ICMP echo's identifier at both ends.
    pub port: L4Port,
}

impl End {
    #[inline(always)]
    const fn is_before(self, other: Self) -> bool {
        self.address.is_before(other.address)
            || (self.address.is(other.address) && self.port.number() < other.port.number())
    }
}

impl FlowKey {
    /// The key of the flow between `one` and `other` in an L2 domain.
    #[inline(always)]
    pub const fn of(bridge: u32, protocol: u8, one: End, other: End) -> Self {
        let (low, high) = if other.is_before(one) { (other, one) } else { (one, other) };
        Self {
            bridge,
            low_port: low.port,
            high_port: high.port,
            low: low.address,
            high: high.address,
            protocol,
            pad: [0; 3],
        }
    }
}
