//! A named set or map, as messages of a transaction.

use nix::libc;

use super::attribute::Attributes;
use super::batch::Batch;
use super::expression::value;
use super::kind::Kind;
use super::names::TABLE;

const SET_TABLE: u16 = 1;
const SET_NAME: u16 = 2;
const SET_FLAGS: u16 = 3;
const SET_KEY_TYPE: u16 = 4;
const SET_KEY_LEN: u16 = 5;
const SET_DATA_TYPE: u16 = 6;
const SET_DATA_LEN: u16 = 7;
const SET_ID: u16 = 10;
/// `NFT_SET_MAP`.
const MAP: u32 = 8;
/// Nobody may change it while a rule uses it; so it need not be watched.
const CONSTANT: u32 = 2;
/// Of several values one behind the other each type has so many bits (`TYPE_BITS`).
const TYPE_BITS: u32 = 6;

const LIST_TABLE: u16 = 1;
const LIST_SET: u16 = 2;
const LIST_ELEMENTS: u16 = 3;
const LIST_ID: u16 = 4;
const LIST_ELEM: u16 = 1;
const ELEM_KEY: u16 = 1;
const ELEM_DATA: u16 = 2;

/// Elements of one message: an attribute has 65,535 bytes at most, and an element up to 60.
const TOGETHER: usize = 1000;

/// The type and the length of values of these kinds, one behind the other.
pub(super) fn type_of(kinds: &[Kind]) -> (u32, u32) {
    let number = kinds.iter().fold(0, |all, kind| all << TYPE_BITS | kind.number());
    (number, kinds.iter().map(|kind| kind.length()).sum())
}

/// A set by its name.
#[derive(Debug)]
pub(super) struct NamedSet<'a> {
    /// Its name in the table.
    pub(super) name: &'a str,
    /// Its number in the transaction.
    pub(super) id: u32,
    /// What its keys are.
    pub(super) key: &'a [Kind],
}

impl NamedSet<'_> {
    /// The set itself, with these flags beside those that every set of ours has.
    pub(super) fn attributes(&self, flags: u32) -> Attributes {
        let (kind, length) = type_of(self.key);
        Attributes::default()
            .text(SET_TABLE, TABLE)
            .text(SET_NAME, self.name)
            .number(SET_FLAGS, CONSTANT | flags)
            .number(SET_KEY_TYPE, kind)
            .number(SET_KEY_LEN, length)
            .number(SET_ID, self.id)
    }

    /// The same of a map, to values of this type and length.
    pub(super) fn attributes_of_map(&self, (kind, length): (u32, u32)) -> Attributes {
        self.attributes(MAP).number(SET_DATA_TYPE, kind).number(SET_DATA_LEN, length)
    }

    /// Adds its elements to a transaction.
    pub(super) fn fill(&self, batch: &mut Batch, elements: Vec<Attributes>) {
        let mut elements = elements.into_iter().peekable();
        while elements.peek().is_some() {
            let some = elements.by_ref().take(TOGETHER);
            let some = some.fold(Attributes::default(), |all, element| all.nest(LIST_ELEM, element));
            let list = Attributes::default()
                .text(LIST_TABLE, TABLE)
                .text(LIST_SET, self.name)
                .number(LIST_ID, self.id)
                .nest(LIST_ELEMENTS, some);
            batch.add("a set's elements", libc::NFT_MSG_NEWSETELEM, libc::NLM_F_CREATE, &list);
        }
    }
}

/// An element with this key.
pub(super) fn element(key: &[u8]) -> Attributes {
    Attributes::default().nest(ELEM_KEY, value(key))
}

/// An element of a map, with this key and value.
pub(super) fn element_of_map(key: &[u8], data: &[u8]) -> Attributes {
    element(key).nest(ELEM_DATA, value(data))
}
