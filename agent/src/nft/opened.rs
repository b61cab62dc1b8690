//! Host ports that the kernel opens, where others' rules are asked who may use them: maps of where they lead, sets of whose clients are hidden, and the few rules
//! that look packets up there, however many host ports there are.
//!
//! As of the reference's portmap: what is for an address of the node is led to the container behind whatever others have at `prerouting` and `output`, so that
//! their rules meet it with both addresses, and connection tracking says that it was led (`ct status dnat`). Others' own translations come first.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use nix::libc;

use super::attribute::Attributes;
use super::batch::Batch;
use super::expression::{Comparison, Expressions, Part, Side, octets};
use super::kind::Kind;
use super::named_set::{NamedSet, element, element_of_map, type_of};

const LOOPBACK_V4: IpNet = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8));
const LOOPBACK_V6: IpNet = IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128));

/// Keys of the maps: the host port of one address, and that of any.
const AT: [Part; 3] = [Part::Address(Side::Destination), Part::Protocol, Part::Port];
const ANYWHERE: [Part; 2] = [Part::Protocol, Part::Port];
/// Keys of the sets of container's ports: how they were asked for, and where that led.
const LED: [Part; 4] = [Part::Protocol, Part::AskedPort, Part::Address(Side::Destination), Part::Port];
/// Keys of the set of containers that ask themselves: the same, and who asks.
const LED_BACK: [Part; 5] = [Part::Address(Side::Source), LED[0], LED[1], LED[2], LED[3]];

/// A host port that the kernel opens, in one family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenedPort {
    /// The address of the node, where the host port is of one alone. Of the family of `to`.
    pub host_ip: Option<IpAddr>,
    /// IP protocol number.
    pub protocol: u8,
    /// The port of the node.
    pub host_port: u16,
    /// The container's address and port.
    pub to: SocketAddr,
    /// Which clients the container sees as the node.
    pub hidden: Hidden,
}

/// Which clients a container sees by an address of the node. Itself it always does: it would drop what comes from its own address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hidden {
    /// Itself alone.
    Itself,
    /// Those of its own subnet, to whom its answers would not pass the node otherwise.
    Neighbors(IpNet),
    /// All.
    Everyone,
}

/// What is looked up of one family.
#[derive(Debug)]
pub(super) struct Opened<'a> {
    is_v4: bool,
    ports: Vec<&'a OpenedPort>,
}

/// Of each family that has any.
pub(super) fn families(ports: &BTreeSet<OpenedPort>) -> Vec<Opened<'_>> {
    let of = |is_v4| Opened { is_v4, ports: ports.iter().filter(|it| it.to.is_ipv4() == is_v4).collect() };
    [true, false].map(of).into_iter().filter(|family| !family.ports.is_empty()).collect()
}

impl Opened<'_> {
    /// Adds maps and sets to a transaction, numbered from `first` on; returns the next number.
    pub(super) fn add_to(&self, batch: &mut Batch, first: u32) -> u32 {
        let lists = [
            ("at", &AT[..], self.leads(|port| port.host_ip.map(octets))),
            ("anywhere", &ANYWHERE[..], self.leads(|port| port.host_ip.is_none().then(Vec::new))),
            ("everyone", &LED[..], self.led(|hidden| *hidden == Hidden::Everyone)),
            ("neighbors", &LED[..], self.led(|hidden| matches!(hidden, Hidden::Neighbors(_)))),
            ("itself", &LED_BACK[..], self.led_back()),
        ];
        let mut id = first;
        for (what, parts, elements) in lists {
            let (name, key) =
                (self.name(what), parts.iter().map(|part| part.kind(self.is_v4)).collect::<Vec<_>>());
            let set = NamedSet { name: &name, id, key: &key };
            let attributes = match what {
                "at" | "anywhere" => set.attributes_of_map(type_of(&[Kind::address(self.is_v4), Kind::Port])),
                _ => set.attributes(0),
            };
            batch.add("host ports", libc::NFT_MSG_NEWSET, libc::NLM_F_CREATE, &attributes);
            set.fill(batch, elements);
            id += 1;
        }
        id
    }

    /// Leads what comes from elsewhere.
    pub(super) fn leading_others(&self) -> [Expressions; 2] {
        self.leading(|steps| steps.for_the_node())
    }

    /// Leads what the node's own sockets send. The loopback is left alone: what would answer it by a bridge is a martian.
    pub(super) fn leading_own(&self) -> [Expressions; 2] {
        let loopback = if self.is_v4 { LOOPBACK_V4 } else { LOOPBACK_V6 };
        self.leading(|steps| {
            let steps = steps.address(Side::Source, Comparison::IsNot, &loopback);
            steps.address(Side::Destination, Comparison::IsNot, &loopback).for_the_node()
        })
    }

    /// Hides clients.
    pub(super) fn hiding(&self) -> Vec<Expressions> {
        let begin = || Expressions::default().family(self.family()).redirected();
        let led = |what, steps: Expressions| steps.parts_in(&LED, self.is_v4, &self.name(what)).masquerade();
        let subnets: BTreeSet<_> = self.ports.iter().filter_map(|port| port.subnet()).collect();
        let neighbors = subnets
            .into_iter()
            .map(|subnet| led("neighbors", begin().address(Side::Source, Comparison::Is, &subnet)));
        let itself = begin().parts_in(&LED_BACK, self.is_v4, &self.name("itself")).masquerade();
        [led("everyone", begin()), itself].into_iter().chain(neighbors).collect()
    }

    /// The one of an address comes first.
    fn leading(&self, whom: impl Fn(Expressions) -> Expressions) -> [Expressions; 2] {
        let keys: [(&[Part], _); 2] = [(&AT, "at"), (&ANYWHERE, "anywhere")];
        keys.map(|(parts, what)| {
            whom(Expressions::default().family(self.family())).lead_by(parts, self.is_v4, &self.name(what))
        })
    }

    /// Elements of a map, of the host ports whose address is said to be some.
    fn leads(&self, address: impl Fn(&OpenedPort) -> Option<Vec<u8>>) -> Vec<Attributes> {
        let element = |port: &&OpenedPort| {
            let key = [address(port)?, word(&[port.protocol]), word(&port.host_port.to_be_bytes())].concat();
            Some(element_of_map(&key, &port.end()))
        };
        self.ports.iter().filter_map(element).collect()
    }

    /// Elements of a set of containers' ports, of those whose clients are hidden so.
    fn led(&self, is_of: impl Fn(&Hidden) -> bool) -> Vec<Attributes> {
        let ports = self.ports.iter().filter(|port| is_of(&port.hidden));
        elements(ports.map(|port| port.led()))
    }

    fn led_back(&self) -> Vec<Attributes> {
        elements(self.ports.iter().map(|port| [octets(port.to.ip()), port.led()].concat()))
    }

    fn family(&self) -> u8 {
        (if self.is_v4 { libc::NFPROTO_IPV4 } else { libc::NFPROTO_IPV6 }) as u8
    }

    fn name(&self, what: &str) -> String {
        format!("{what}-{}", if self.is_v4 { "v4" } else { "v6" })
    }
}

impl OpenedPort {
    fn led(&self) -> Vec<u8> {
        [word(&[self.protocol]), word(&self.host_port.to_be_bytes()), self.end()].concat()
    }

    fn end(&self) -> Vec<u8> {
        [octets(self.to.ip()), word(&self.to.port().to_be_bytes())].concat()
    }

    fn subnet(&self) -> Option<IpNet> {
        match self.hidden {
            Hidden::Neighbors(subnet) => Some(subnet.trunc()),
            _ => None,
        }
    }
}

/// Each key once: several addresses of the node may lead to one container's port.
fn elements(keys: impl Iterator<Item = Vec<u8>>) -> Vec<Attributes> {
    let keys: BTreeSet<_> = keys.collect();
    keys.iter().map(|key| element(key)).collect()
}

/// A value in the words of its registers.
fn word(bytes: &[u8]) -> Vec<u8> {
    let mut word = bytes.to_vec();
    word.resize(4, 0);
    word
}
