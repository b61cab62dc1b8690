//! What rules refuse or change.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::addresses::Addresses;
use super::reach::Reach;

/// What a chain refuses or changes. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Harm {
    /// The first of its rules by which any packet may be met.
    pub(super) by: Option<String>,
    /// The destinations of those that others meet.
    pub(super) to: Addresses,
    /// The sources that it translates, by the destinations of what it does so to.
    masqueraded: BTreeMap<Addresses, Addresses>,
    /// Whether it does anything to what is sent to the node's own addresses.
    to_node: bool,
    /// Whether it does anything to what passes by other interfaces than the bridges.
    elsewhere: bool,
    /// Whether it does anything to packets that a rule has marked.
    marked: bool,
}

impl Harm {
    /// What any packet may be met by.
    pub(super) fn by(who: String) -> Self {
        Self { by: Some(who), ..Self::default() }
    }

    /// That of a chain which cannot be read.
    pub(crate) fn unknown() -> Self {
        Self::by("what cannot be read".to_owned())
    }

    /// What translates any source, of one of these to another.
    pub(super) fn masquerading(of: &Addresses) -> Self {
        Self { masqueraded: [(of.clone(), of.clone())].into(), ..Self::default() }
    }

    /// Whether packets to any of these meet any of it.
    pub(crate) fn is_met_in(&self, reach: &Reach) -> bool {
        self.by.is_some()
            || self.is_refused_in(reach)
            || self.masqueraded.iter().any(|(to, from)| is_masqueraded_in(from, to, reach))
            || reach.is_anywhere && (self.to_node || self.elsewhere || self.marked)
    }

    /// What is for a group or on a link reaches everybody.
    fn is_refused_in(&self, reach: &Reach) -> bool {
        !self.to.is_empty() && (reach.is_open || self.to.has_everybodys() || reach.has_any_in(&self.to))
    }

    /// Whether packets meet any of it that a rule has marked. Those between containers have no mark while nothing else does harm that they meet; what the
    /// node sends or routes to them may have one.
    pub(crate) fn is_for_marked(&self) -> bool {
        self.marked
    }

    /// Whether there is anything that packets without a mark meet.
    pub(super) fn is_any(&self) -> bool {
        self.by.is_some()
            || !self.to.is_empty()
            || !self.masqueraded.is_empty()
            || self.to_node
            || self.elsewhere
    }

    /// Adds what another does.
    pub(super) fn add(&mut self, other: &Self) {
        self.by = self.by.take().or_else(|| other.by.clone());
        self.to.add(&other.to);
        for (to, from) in &other.masqueraded {
            self.masqueraded.entry(to.clone()).or_default().add(from);
        }
        self.to_node |= other.to_node;
        self.elsewhere |= other.elsewhere;
        self.marked |= other.marked;
    }

    /// The same, done to marked packets only.
    pub(super) fn for_marked(self) -> Self {
        Self { marked: self.marked || self.is_any(), ..Self::default() }
    }

    /// What of it is done to marked packets.
    pub(super) fn marked_part(self) -> Self {
        Self { marked: self.marked, ..Self::default() }
    }

    /// The same, done to what is sent to the node's own addresses only.
    pub(super) fn for_node(self) -> Self {
        Self { to_node: self.is_any(), marked: self.marked, ..Self::default() }
    }

    /// The same, done to what passes by other interfaces than the bridges only.
    pub(super) fn for_elsewhere(self) -> Self {
        Self { elsewhere: self.is_any(), marked: self.marked, ..Self::default() }
    }

    /// The same, done to what is sent to these only.
    pub(super) fn confined_to(self, to: &Addresses) -> Self {
        let refused = if self.by.is_some() { to.clone() } else { self.to.within(to) };
        self.narrowed_to(refused, |known| known.within(to))
    }

    /// The same, but for what is sent to these.
    pub(super) fn without(self, left: &Addresses) -> Self {
        let refused = if self.by.is_some() { Addresses::every() } else { self.to.clone() };
        self.narrowed_to(refused.without(left), |known| known.without(left))
    }

    /// The same, but for what comes from some and is sent to others, as far as sources are translated.
    pub(super) fn without_between(mut self, (from, to): &(Addresses, Addresses)) -> Self {
        for (known, sources) in std::mem::take(&mut self.masqueraded) {
            for (to, from) in
                [(known.without(to), sources.clone()), (known.within(to), sources.without(from))]
            {
                if !to.is_empty() && !from.is_empty() {
                    self.masqueraded.entry(to).or_default().add(&from);
                }
            }
        }
        self
    }

    fn narrowed_to(self, refused: Addresses, narrowed: impl Fn(&Addresses) -> Addresses) -> Self {
        let masqueraded = self.masqueraded.into_iter().map(|(to, from)| (narrowed(&to), from));
        let masqueraded = masqueraded.filter(|(to, _)| !to.is_empty());
        Self { by: None, to: refused, masqueraded: masqueraded.collect(), ..self }
    }

    /// The same, done to what comes from these only, as far as sources are translated. Who refuses by a source may be told a forged one.
    pub(super) fn confined_from(mut self, sources: &Addresses) -> Self {
        self.masqueraded.values_mut().for_each(|from| *from = from.within(sources));
        self.masqueraded.retain(|_, from| !from.is_empty());
        self
    }
}

/// Whether the source of anything is translated that one of these says to another. What is for a group or on a link does not count: it is let through all the
/// same.
fn is_masqueraded_in(from: &Addresses, to: &Addresses, reach: &Reach) -> bool {
    // Two of each tell: a container that speaks to itself is not bridged.
    let two_in = |some: &Addresses, is_v4| -> Vec<IpAddr> {
        let of_family = reach.addresses.iter().filter(|address| address.is_ipv4() == is_v4);
        of_family.filter(|address| some.has(**address)).take(2).copied().collect()
    };
    let is_between =
        |is_v4| two_in(to, is_v4).iter().any(|to| two_in(from, is_v4).iter().any(|from| from != to));
    reach.is_open || is_between(true) || is_between(false)
}

impl Reach {
    fn has_any_in(&self, addresses: &Addresses) -> bool {
        self.addresses.iter().any(|address| addresses.has(*address))
    }
}
