//! Which class of a queue the packets of a source are: a map of one family, and the rule that looks a packet up there.
//!
//! The rule stands where the source is still the container's, before the kernel masquerades. It sets the packet's priority, which a queue
//! of that major number takes for the class (`htb_classify`, net/sched/sch_htb.c), also behind a tunnel of the node. A veth clears the
//! priority of what passes it (`____dev_forward_skb`, net/core/dev.c): no container chooses its own.

use std::collections::BTreeMap;
use std::net::IpAddr;

use nix::libc;

use super::attribute::Attributes;
use super::batch::Batch;
use super::expression::{Expressions, octets};
use super::kind::Kind;
use super::named_set::{NamedSet, element_of_map};

/// What `nft` shows classes by (`TYPE_CLASSID`, nftables/datatype.h).
const TYPE_CLASSID: u32 = 23;
const CLASSID_BYTES: u32 = 4;

const SET_DESC: u16 = 9;
const SET_USERDATA: u16 = 13;
const DESC_SIZE: u16 = 1;
/// Tells `nft` that the numbers are in the machine's order: type (`NFTNL_UDATA_SET_DATABYTEORDER`), length, and behind them
/// `BYTEORDER_HOST_ENDIAN`.
const DATA_BYTE_ORDER: [u8; 2] = [1, 4];
const MACHINES: u32 = 1;

/// The classes of one family's sources.
#[derive(Debug)]
pub(super) struct ClassMap {
    is_v4: bool,
    id: u32,
    classes: BTreeMap<IpAddr, u32>,
}

/// The maps of these classes: one of each family that has any. They are numbered from `first` on in the transaction.
pub(super) fn maps(classes: &BTreeMap<IpAddr, u32>, first: u32) -> Vec<ClassMap> {
    let families = [true, false].into_iter().zip(first..);
    let map = |(is_v4, id)| {
        let own = classes.iter().filter(|(ip, _)| ip.is_ipv4() == is_v4);
        ClassMap { is_v4, id, classes: own.map(|(ip, class)| (*ip, *class)).collect() }
    };
    families.map(map).filter(|map| !map.classes.is_empty()).collect()
}

impl ClassMap {
    /// Adds the map and its elements to a transaction.
    pub(super) fn add_to(&self, batch: &mut Batch) {
        let name = self.name();
        let set = NamedSet { name: &name, id: self.id, key: &[Kind::address(self.is_v4)] };
        let size = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        let attributes = set
            .attributes_of_map((TYPE_CLASSID, CLASSID_BYTES))
            .nest(SET_DESC, Attributes::default().number(DESC_SIZE, size))
            .bytes(SET_USERDATA, &[&DATA_BYTE_ORDER[..], &MACHINES.to_ne_bytes()].concat());
        batch.add("a map", libc::NFT_MSG_NEWSET, libc::NLM_F_CREATE, &attributes);
        let element = |(ip, class): (&IpAddr, &u32)| {
            // The kernel copies it into the packet as it is: a number of the machine's order.
            element_of_map(&octets(*ip), &class.to_ne_bytes())
        };
        set.fill(batch, self.classes.iter().map(element).collect());
    }

    pub(super) fn steps(&self) -> Expressions {
        let family = if self.is_v4 { libc::NFPROTO_IPV4 } else { libc::NFPROTO_IPV6 };
        Expressions::default().family(family as u8).priority_of_source(self.is_v4, &self.name())
    }

    fn name(&self) -> String {
        format!("classes-{}", if self.is_v4 { "v4" } else { "v6" })
    }
}
