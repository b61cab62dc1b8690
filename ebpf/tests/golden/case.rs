//! A golden file: what the packet is, where it meets us, what must become of it, and its bytes.
//!
//! ```text
//! # Anything behind a hash is for people.
//! entry: from_container alpha      the program and the interface it runs on
//! state: gso 1448, tag 5, judged, checked, outside, marked, linear 14, from beta    (optional) what the frame has beside its bytes; `bare 0800`: it
//!                                  has no Ethernet header, which would say that it is this; `full NAME connections`, or `openings`: the
//!                                  container may have no more of them
//! missing: drop                    (optional) the program is one for restricted ports
//! expect: peer beta                or `port`, `wire`, `into NAME`, `pass`, `drop REASON`, `flood COPIES`, or
//!                                  `onward NAME` (by the kernel, changed), or `told REASON NAME`: dropped, and become the word to its sender, out of there
//! leaves: 5                        (optional) the tag that it leaves with, or `untagged`
//! copies: red2 trunk:10            (optional) where copies go in their order, and with which tags
//! counts: alpha.from_fast beta.to_fast
//! lookups: alpha beta              (optional) the ports that look up flows from now on
//! notes: 1                         (optional) how many flows were noticed
//! incoming: 1                      (optional) how many flows were noticed that began outside
//! accepts: 1                       (optional) of how many flows others' rules have let something through, or (-1) are forgotten
//! opens: 1                         (optional) of how many connections tracking is to be liberal
//! pays: kai                        (optional) whose share of the kernel's flows has grown
//! apart: 1                         (optional) for how many flows of the kernel's there was no room
//! claims: 1                        (optional) how many flows outside were noticed that are the kernel's
//! learns: 1                        (optional) how many stations are written down as heard beyond an uplink
//! unlearns: 1                      (optional) how many are forgotten
//! chooses: 1                       (optional) how many link-local addresses are chosen, or (-1) taken away
//! moves: 1                         (optional) how many stations and addresses are elsewhere than before, or apart
//! flows: 2                         (optional) how many entries of translated connections were made, or (-1) taken away
//! assured: 2                       (optional) how many of them became assured, or (-2) no longer are
//! openings: 1                      (optional) how many openings were charged, or (-1) paid back
//! firsts: 1                        (optional) how many first fragments are written down
//! charges: xi 47                   (optional) the nanoseconds that a limited sender has to pay
//! bytes:
//! 02 00 00 00 03 ea                # to beta
//! becomes:                         (optional) what is delivered in their place
//! 02 00 00 00 03 ea                # to beta
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use shunt_dataplane::stages::port::Missing;
use shunt_dataplane::stages::share::Excess;
use shunt_dataplane::wire::packet::Tag;
use shunt_dataplane::{DropReason, PassReason};

use super::bytes_packet::BytesPacket;
pub use super::entry::Entry;
use super::memory_tables::MemoryTables;
use super::world;

/// From the workspace's folder.
const PACKETS: &str = "ebpf/tests/golden/packets";

#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub entry: Entry,
    pub here: u32,
    pub missing: Missing,
    pub packet: BytesPacket,
    /// As [`Verdict::code`]: verdict, target, reason.
    pub expect: (u32, u32, u32),
    /// The tag that it leaves with, where the file says so.
    pub leaves: Option<Option<u16>>,
    pub copies: Vec<(u32, Option<u16>)>,
    pub counts: BTreeSet<String>,
    pub lookups: Vec<u32>,
    pub notes: usize,
    pub incoming: usize,
    pub accepts: isize,
    pub opens: usize,
    pub claims: usize,
    pub pays: Option<String>,
    pub apart: u64,
    pub learns: usize,
    pub unlearns: usize,
    /// How many link-local addresses are there more than before.
    pub chooses: isize,
    /// How many stations and addresses are elsewhere than before.
    pub moves: usize,
    /// How many first fragments were written down.
    pub firsts: usize,
    /// How many entries of translated connections are there more than before.
    pub flows: isize,
    /// How many of them became assured.
    pub assured: isize,
    /// How many openings were charged, less those paid back.
    pub openings: i64,
    /// The bytes afterwards, where they are others.
    pub becomes: Vec<u8>,
    pub charges: Option<(u32, u64)>,
}

/// Every golden file beside this one, by name.
pub fn all() -> Vec<Case> {
    // Several crates include this, at different depths.
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join(PACKETS));
    let folder = above.into_iter().find(|folder| folder.is_dir()).expect("a folder of golden packets");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder that can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "packet"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no golden packets in {}", folder.display());
    let mut cases: Vec<Case> = files.iter().map(|path| read(path)).collect();
    let handed_on: Vec<Case> = cases.iter().filter_map(handed_on).collect();
    cases.extend(handed_on);
    cases
}

/// The same packet behind `from_container`, if that hands its port on to `from_mapped`: it must fare as it does alone.
fn handed_on(alone: &Case) -> Option<Case> {
    let tables = MemoryTables::for_packet(&alone.packet);
    if alone.entry == Entry::FromMapped {
        Entry::FromContainer.travel(&mut alone.packet.clone(), alone.here, Missing::Pass, &tables);
    }
    let packet = BytesPacket { handed: true, ..alone.packet.clone() };
    let name = format!("{}_handed_on", alone.name);
    (tables.handed.get().ifindex == alone.here).then(|| Case { name, packet, ..alone.clone() })
}

fn read(path: &Path) -> Case {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
    let mut case = Case {
        name: name.clone(),
        entry: Entry::FromContainer,
        here: 0,
        missing: Missing::Pass,
        packet: BytesPacket::default(),
        expect: (u32::MAX, 0, 0),
        leaves: None,
        copies: Vec::new(),
        counts: BTreeSet::new(),
        lookups: Vec::new(),
        notes: 0,
        incoming: 0,
        accepts: 0,
        opens: 0,
        claims: 0,
        pays: None,
        apart: 0,
        learns: 0,
        unlearns: 0,
        chooses: 0,
        moves: 0,
        firsts: 0,
        flows: 0,
        assured: 0,
        openings: 0,
        becomes: Vec::new(),
        charges: None,
    };
    let mut state = "";
    let mut in_bytes = false;
    let mut in_becomes = false;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line == "becomes:" {
            in_becomes = true;
        } else if in_becomes {
            case.becomes.extend(hex(line, &name));
        } else if in_bytes {
            case.packet.bytes.extend(hex(line, &name));
        } else if let Some((field, value)) = line.split_once(':') {
            let words: Vec<&str> = value.split_whitespace().collect();
            match field {
                "entry" => (case.entry, case.here) = (entry(words[0]), world::ifindex(words[1])),
                "state" => state = value,
                "missing" => {
                    assert_eq!(words, ["drop"], "{name}: what may be missing");
                    case.missing = Missing::Drop;
                }
                "expect" => case.expect = expect(&words, &name),
                "leaves" => case.leaves = Some(words[0].parse().ok()),
                "copies" => case.copies = words.iter().map(|word| copy(word)).collect(),
                "counts" => case.counts = words.iter().map(|word| (*word).to_owned()).collect(),
                "lookups" => case.lookups = words.iter().map(|word| world::ifindex(word)).collect(),
                "notes" => case.notes = words[0].parse().expect("a number of flows"),
                "incoming" => case.incoming = words[0].parse().expect("a number of flows"),
                "opens" => case.opens = words[0].parse().expect("a number of connections"),
                "accepts" => case.accepts = words[0].parse().expect("a number of flows"),
                "pays" => case.pays = Some(words[0].to_owned()),
                "apart" => case.apart = words[0].parse().expect("a number of flows"),
                "claims" => case.claims = words[0].parse().expect("a number of flows"),
                "learns" => case.learns = words[0].parse().expect("a number of stations"),
                "firsts" => case.firsts = words[0].parse().expect("a number of fragments"),
                "unlearns" => case.unlearns = words[0].parse().expect("a number of stations"),
                "chooses" => case.chooses = words[0].parse().expect("a number of addresses"),
                "moves" => case.moves = words[0].parse().expect("a number of hints"),
                "flows" => case.flows = words[0].parse().expect("a number of entries"),
                "assured" => case.assured = words[0].parse().expect("a number of entries"),
                "openings" => case.openings = words[0].parse().expect("a number of openings"),
                "charges" => {
                    let nanoseconds = words[1].parse().expect("a number of nanoseconds");
                    case.charges = Some((world::ifindex(words[0]), nanoseconds));
                }
                "bytes" => in_bytes = true,
                _ => panic!("{name}: no field {field}"),
            }
        }
    }
    assert!(
        in_bytes && case.here != 0 && case.expect.0 != u32::MAX,
        "{name}: entry, expect and bytes are needed"
    );
    if !in_becomes {
        case.becomes.clone_from(&case.packet.bytes);
    }
    case.packet.readable = case.packet.bytes.len();
    apply(state, &mut case.packet, &name);
    case
}

fn entry(word: &str) -> Entry {
    Entry::ALL.into_iter().find(|entry| entry.name() == word).unwrap_or_else(|| panic!("no program {word}"))
}

fn copy(word: &str) -> (u32, Option<u16>) {
    let (place, tci) = word.split_once(':').unwrap_or((word, ""));
    (world::ifindex(place), tci.parse().ok())
}

fn expect(words: &[&str], name: &str) -> (u32, u32, u32) {
    match words {
        ["peer", place] => (2, world::ifindex(place), 0),
        ["port", place] => (3, world::ifindex(place), 0),
        ["neighbor", place] => (4, world::ifindex(place), 0),
        ["wire", place] => (6, world::ifindex(place), 0),
        ["into", place] => (7, world::ifindex(place), 0),
        ["pass", reason] => (0, 0, number(PassReason::ALL.iter().map(|r| (r.name(), *r as u32)), reason)),
        ["onward", place] => (9, world::ifindex(place), 0),
        ["flood", copies] => (5, copies.parse().expect("how many copies"), 0),
        ["drop", reason] => (1, 0, dropped(reason)),
        ["told", reason, place] => (8, world::ifindex(place), dropped(reason)),
        _ => panic!("{name}: expects what? {words:?}"),
    }
}

fn dropped(reason: &str) -> u32 {
    number(DropReason::ALL.iter().map(|r| (r.name(), *r as u32)), reason)
}

fn number(mut reasons: impl Iterator<Item = (&'static str, u32)>, wanted: &str) -> u32 {
    reasons.find(|(name, _)| *name == wanted).unwrap_or_else(|| panic!("no reason {wanted}")).1
}

fn apply(state: &str, packet: &mut BytesPacket, name: &str) {
    for item in state.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        match item.split_whitespace().collect::<Vec<_>>()[..] {
            ["gso", size] => packet.segment_size = size.parse().expect("a size"),
            ["tag", tci] => packet.tag = Some(tag(tci, false)),
            ["service", tci] => packet.tag = Some(tag(tci, true)),
            ["linear", bytes] => packet.readable = bytes.parse().expect("a length"),
            ["from", place] => packet.origin = world::ifindex(place),
            ["judged"] => packet.judged = true,
            ["checked"] => packet.checked = true,
            ["outside"] => packet.outside = true,
            ["marked"] => packet.marked = true,
            ["full", place, "connections"] => packet.full = Some((world::slot(place), Excess::Connections)),
            ["full", place, "openings"] => packet.full = Some((world::slot(place), Excess::Openings)),
            ["bare", ether_type] => {
                packet.bare = Some(u16::from_str_radix(ether_type, 16).expect("a type"));
            }
            _ => panic!("{name}: no state {item}"),
        }
    }
}

fn tag(tci: &str, service: bool) -> Tag {
    let tci = tci.parse().expect("a tci");
    if service { Tag::service(tci) } else { Tag::customer(tci) }
}

/// Bytes in hex, with `*COUNT` behind a byte for a run of it.
fn hex(line: &str, name: &str) -> Vec<u8> {
    line.split_whitespace()
        .flat_map(|word| {
            let (byte, times) = word.split_once('*').unwrap_or((word, "1"));
            let byte = u8::from_str_radix(byte, 16).unwrap_or_else(|_| panic!("{name}: no byte {word}"));
            vec![byte; times.parse().expect("a count")]
        })
        .collect()
}
