//! Bridges, and how they treat their ports.

use std::time::Duration;

use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::{BridgePortState, BridgeStpState, InfoBridge, InfoBridgePort, LinkHeader};

/// What a bridge is told of a port when it is put into service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortFlags {
    /// The bridge sends back out of the port that a packet came by (`IFLA_BRPORT_MODE`).
    pub hairpin: bool,
    /// The port reaches no other isolated port (`IFLA_BRPORT_ISOLATED`).
    pub isolated: bool,
    /// Only stations that the bridge was told of may send by the port (`IFLA_BRPORT_LOCKED`, since Linux 5.18). An older kernel's
    /// ports count as locked: it cannot be told.
    pub locked: bool,
    /// The bridge learns nothing from the port and floods nothing to it: the programs do everything.
    pub aside: bool,
}

impl PortFlags {
    pub(crate) fn of(said: &[InfoBridgePort]) -> Self {
        use InfoBridgePort::{
            BroadcastFlood, HairpinMode, Isolated, Learning, Locked, MulticastFlood, UnicastFlood,
        };
        let has = |flag: InfoBridgePort| said.contains(&flag);
        Self {
            hairpin: has(HairpinMode(true)),
            isolated: has(Isolated(true)),
            locked: !has(Locked(false)),
            aside: [Learning(false), UnicastFlood(false), MulticastFlood(false), BroadcastFlood(false)]
                .into_iter()
                .all(has),
        }
    }

    /// The attributes that make a port exactly this kind of port, but for `aside`: what the bridge learns and floods is only ever
    /// switched off.
    pub fn exact(self) -> Vec<InfoBridgePort> {
        let flags = [
            InfoBridgePort::HairpinMode(self.hairpin),
            InfoBridgePort::Isolated(self.isolated),
            InfoBridgePort::Locked(self.locked),
        ];
        self.aside().chain(flags).collect()
    }

    /// The attributes that restrict a port as far as this; what others restrict stays.
    pub fn least(self) -> Vec<InfoBridgePort> {
        let flags = [
            self.hairpin.then_some(InfoBridgePort::HairpinMode(true)),
            self.isolated.then_some(InfoBridgePort::Isolated(true)),
            self.locked.then_some(InfoBridgePort::Locked(true)),
        ];
        flags.into_iter().flatten().chain(self.aside()).collect()
    }

    fn aside(self) -> impl Iterator<Item = InfoBridgePort> {
        let aside = [
            InfoBridgePort::Learning(false),
            InfoBridgePort::UnicastFlood(false),
            InfoBridgePort::MulticastFlood(false),
            InfoBridgePort::BroadcastFlood(false),
        ];
        aside.into_iter().filter(move |_| self.aside)
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            hairpin: self.hairpin || other.hairpin,
            isolated: self.isolated || other.isolated,
            locked: self.locked || other.locked,
            aside: self.aside || other.aside,
        }
    }
}

/// What else may be set on a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// As [`PortFlags::locked`]; no port of an older kernel is.
    pub locked: bool,
    /// The bridge learns nothing from the port.
    pub deaf: bool,
    /// What is for the port goes to another one while it has no carrier.
    pub has_backup: bool,
    /// The port is disabled. Each is while it is not operational.
    pub disabled: bool,
    /// The port is blocked, by a spanning tree that has made up its mind or by an operator.
    pub blocking: bool,
}

impl PortSettings {
    pub(crate) fn of(said: &[InfoBridgePort]) -> Self {
        use InfoBridgePort::{BackupPort, Learning, Locked, State};
        let has = |flag: InfoBridgePort| said.contains(&flag);
        Self {
            locked: has(Locked(true)),
            deaf: has(Learning(false)),
            has_backup: said.iter().any(|said| matches!(said, BackupPort(port) if *port != 0)),
            disabled: has(State(BridgePortState::Disabled)),
            blocking: has(State(BridgePortState::Blocking)),
        }
    }
}

/// Whether a port is kept from forwarding, by a spanning tree or by an operator, while it is up.
pub(crate) fn is_blocked(said: &[InfoBridgePort]) -> bool {
    use BridgePortState::{Blocking, Learning, Listening};
    said.iter().any(|said| matches!(said, InfoBridgePort::State(Listening | Learning | Blocking)))
}

/// How a bridge bridges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeMode {
    /// It keeps VLANs apart.
    pub filters_vlans: bool,
    /// It asks its ports who listens to which groups (`mcast_querier`).
    pub queries: bool,
    /// It runs a spanning tree, or somebody does for it.
    pub spans_tree: bool,
    /// While the tree changes: for how long a station that is not heard is believed to be where it was (IEEE 802.1D-2004
    /// section 7.9.2), instead of for five minutes.
    pub ageing: Option<Duration>,
}

impl BridgeMode {
    pub(crate) fn of(said: impl Iterator<Item = InfoBridge>) -> Self {
        let (mut mode, mut delay, mut changes) = (Self::default(), 0, false);
        for said in said {
            match said {
                InfoBridge::VlanFiltering(on) => mode.filters_vlans = on,
                InfoBridge::MulticastQuerier(on) => mode.queries = on,
                InfoBridge::StpState(state) => mode.spans_tree = state != BridgeStpState::Disabled,
                InfoBridge::ForwardDelay(ticks) => delay = ticks,
                InfoBridge::TopologyChange(on) => changes = on == 1,
                _ => {}
            }
        }
        // `USER_HZ`, of which a second has a hundred.
        mode.ageing = changes.then(|| Duration::from_millis(u64::from(delay) * 10));
        mode
    }
}

/// The port of which a bridge speaks in the payload of `RTM_NEWLINK`: it was told what kind of port it is, or has changed its state.
/// That is no link's message, and is the only one about it.
pub fn read_port(payload: &[u8]) -> Option<u32> {
    let header = LinkHeader::parse(payload).ok()?;
    (header.interface_family == AddressFamily::Bridge).then_some(header.index)
}
