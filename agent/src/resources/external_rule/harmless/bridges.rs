//! By which interfaces bridged packets pass: br_netfilter shows the rules of IP the bridge itself, not its ports.

use std::collections::BTreeSet;
use std::fs;

use nix::libc;
use shunt_netlink::nf_tables::{Element, Expression};

use super::super::reading::attributes::{
    NFT_CMP_EQ, NFT_CMP_NEQ, NFTA_CMP_DATA, NFTA_CMP_OP, NFTA_CMP_SREG, NFTA_LOOKUP_FLAGS, NFTA_LOOKUP_SET,
    NFTA_LOOKUP_SREG, NFTA_META_DREG, is_meta,
};

/// Bytes of an interface's name, filled with zeros (`IFNAMSIZ`).
const NAME: usize = 16;

/// Whether a tagged packet comes in by an interface of its VLAN on top of the bridge.
const SHOWS_VLANS: &str = "/proc/sys/net/bridge/bridge-nf-filter-pass-vlan-input-dev";

/// The bridges of containers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bridges {
    /// Their indices and names.
    links: BTreeSet<(u32, String)>,
    /// Whether packets may come in by other interfaces.
    shows_vlans: bool,
}

/// What tells an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Name,
    Index,
}

/// For which interfaces two expressions ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Those that begin with these bytes, or all others.
    Compared { value: Vec<u8>, is_equal: bool },
    /// Those of the set of this name.
    In(String),
}

impl Bridges {
    pub(crate) fn of(links: impl Iterator<Item = (u32, String)>) -> Self {
        let shows_vlans = fs::read_to_string(SHOWS_VLANS).is_ok_and(|on| on.trim() != "0");
        Self { links: links.collect(), shows_vlans }
    }

    /// How two expressions of a chain of IP at `hook` ask for the interface by which packets pass; none where they do not.
    pub(super) fn asked(&self, pair: &[Expression], hook: u32) -> Option<(By, Asked)> {
        let [load, compared] = pair else { return None };
        let hook = hook as i32;
        let is_in = [libc::NF_INET_PRE_ROUTING, libc::NF_INET_FORWARD].contains(&hook) && !self.shows_vlans;
        let is_out = [libc::NF_INET_FORWARD, libc::NF_INET_POST_ROUTING].contains(&hook);
        let loads = |of_in, of_out| is_in && is_meta(load, of_in) || is_out && is_meta(load, of_out);
        let by = if loads(libc::NFT_META_IIFNAME, libc::NFT_META_OIFNAME) {
            By::Name
        } else if loads(libc::NFT_META_IIF, libc::NFT_META_OIF) {
            By::Index
        } else {
            return None;
        };
        let register = load.number(NFTA_META_DREG)?;
        match compared.name.as_str() {
            "cmp" if compared.number(NFTA_CMP_SREG) == Some(register) => {
                let is_equal = match compared.number(NFTA_CMP_OP)? {
                    NFT_CMP_EQ => true,
                    NFT_CMP_NEQ => false,
                    _ => return None,
                };
                Some((by, Asked::Compared { value: compared.value(NFTA_CMP_DATA)?.to_vec(), is_equal }))
            }
            "lookup" if compared.number(NFTA_LOOKUP_SREG) == Some(register) => {
                let is_inverted = compared.number(NFTA_LOOKUP_FLAGS).unwrap_or_default() != 0;
                Some((by, Asked::In(compared.text(NFTA_LOOKUP_SET).filter(|_| !is_inverted)?)))
            }
            _ => None,
        }
    }

    /// Whether any of them is one that begins with these bytes, or is another.
    pub(super) fn has_any(&self, by: By, value: &[u8], is_equal: bool) -> bool {
        self.is_unknown() || self.keys(by).iter().any(|key| key.starts_with(value) == is_equal)
    }

    /// Whether any of them may be one of these elements.
    pub(super) fn has_any_of(&self, by: By, elements: &[Element]) -> bool {
        let keys = self.keys(by);
        let may_be = |element: &Element| {
            // Intervals have their own order of bytes.
            let is_one =
                !element.ends_interval && element.last.is_none() && element.key.iter().any(|it| *it != 0);
            !is_one || keys.iter().any(|key| key.len() != element.key.len() || *key == element.key)
        };
        self.is_unknown() || elements.iter().any(may_be)
    }

    fn is_unknown(&self) -> bool {
        self.links.is_empty()
    }

    fn keys(&self, by: By) -> Vec<Vec<u8>> {
        let key = |(index, name): &(u32, String)| match by {
            By::Index => index.to_ne_bytes().to_vec(),
            By::Name => name.bytes().chain(std::iter::repeat(0)).take(NAME).collect(),
        };
        self.links.iter().map(key).collect()
    }
}
