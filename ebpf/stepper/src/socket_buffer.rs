//! `struct __sk_buff` (`linux/bpf.h`) around a frame.

use crate::fault::Fault;
use crate::memory::{FRAME, Memory};

const BYTES: usize = 192;
const LENGTH: usize = 0;
const PACKET_TYPE: usize = 4;
const MARK: usize = 8;
const PROTOCOL: usize = 16;
const VLAN_PRESENT: usize = 20;
const VLAN_TCI: usize = 24;
const VLAN_PROTOCOL: usize = 28;
const INGRESS_IFINDEX: usize = 36;
const IFINDEX: usize = 40;
const DATA: usize = 76;
const DATA_END: usize = 80;
const SEGMENT_SIZE: usize = 176;

/// Where a tag that is in the frame itself stands.
const TAG: std::ops::Range<usize> = 12..16;

const ETHERNET_BYTES: usize = 14;

/// The least bytes of a frame that a tag is taken out of (`VLAN_ETH_HLEN`).
const TAGGED: usize = 18;

/// A frame, and what the kernel keeps beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketBuffer {
    /// The frame, from its Ethernet header on, if its interface has such headers.
    pub frame: Vec<u8>,
    /// What it carries, as an Ethernet header says it, in network order; 0 where one does.
    pub protocol: u16,
    /// So many of its bytes are in one piece; the rest is read after `bpf_skb_pull_data` only.
    pub linear: usize,
    /// The interface that the program runs on.
    pub ifindex: u32,
    /// The interface that the frame came into the node by.
    pub ingress_ifindex: u32,
    /// `PACKET_HOST` is 0.
    pub packet_type: u32,
    /// The mark.
    pub mark: u32,
    /// The size of its segments, where it stands for several.
    pub segment_size: u32,
    /// A tag that is not in the frame: its protocol as it is on the wire, and its control information.
    pub tag: Option<(u16, u16)>,
}

impl SocketBuffer {
    /// Puts it where programs look for it.
    pub(crate) fn enter(self, memory: &mut Memory) {
        memory.context = vec![0; BYTES];
        memory.linear = self.linear.min(self.frame.len());
        memory.frame = self.frame;
        for (at, value) in [
            (PACKET_TYPE, self.packet_type),
            (MARK, self.mark),
            (PROTOCOL, self.protocol.into()),
            (INGRESS_IFINDEX, self.ingress_ifindex),
            (IFINDEX, self.ifindex),
            (SEGMENT_SIZE, self.segment_size),
        ] {
            put(&mut memory.context, at, value);
        }
        set_tag(memory, self.tag);
        refresh(memory);
    }

    /// What has become of it.
    pub(crate) fn leave(memory: &Memory) -> Self {
        let context = &memory.context;
        Self {
            frame: memory.frame.clone(),
            linear: memory.linear,
            ifindex: get(context, IFINDEX),
            ingress_ifindex: get(context, INGRESS_IFINDEX),
            packet_type: get(context, PACKET_TYPE),
            mark: get(context, MARK),
            protocol: get(context, PROTOCOL) as u16,
            segment_size: get(context, SEGMENT_SIZE),
            tag: tag(memory),
        }
    }
}

/// `bpf_skb_pull_data`.
pub(crate) fn pull(memory: &mut Memory, bytes: usize) {
    memory.linear = memory.linear.max(bytes.min(memory.frame.len()));
    refresh(memory);
}

/// `bpf_skb_change_head`: zeros in front.
pub(crate) fn push_head(memory: &mut Memory, bytes: usize) {
    memory.frame.splice(..0, vec![0; bytes]);
    memory.linear += bytes;
    refresh(memory);
}

/// `bpf_skb_load_bytes`, which reads what is not in one piece, too.
pub(crate) fn read(memory: &Memory, offset: usize, length: usize) -> Result<&[u8], Fault> {
    let outside = Fault::OutOfBounds { address: FRAME + offset as u64, length };
    memory.frame.get(offset..).and_then(|rest| rest.get(..length)).ok_or(outside)
}

/// `bpf_skb_change_tail`, which puts all of the frame into one piece.
pub(crate) fn change_tail(memory: &mut Memory, bytes: usize) {
    memory.frame.resize(bytes, 0);
    memory.linear = bytes;
    refresh(memory);
}

/// `bpf_skb_adjust_room` that takes bytes away behind the Ethernet header, if there is one, of a frame in one piece.
pub(crate) fn take_room(memory: &mut Memory, bytes: usize) -> Result<(), Fault> {
    let header = if get(&memory.context, PROTOCOL) == 0 { ETHERNET_BYTES } else { 0 };
    let gone = header..header + bytes;
    if gone.end > memory.linear {
        return Err(Fault::OutOfBounds { address: FRAME + gone.start as u64, length: bytes });
    }
    memory.frame.drain(gone);
    memory.linear -= bytes;
    refresh(memory);
    Ok(())
}

/// `bpf_skb_change_type`.
pub(crate) fn change_type(memory: &mut Memory, packet_type: u32) {
    put(&mut memory.context, PACKET_TYPE, packet_type);
}

/// `bpf_skb_vlan_push`: a tag that is there already goes into the frame.
pub(crate) fn push_tag(memory: &mut Memory, protocol: u16, tci: u16) {
    if let Some((outer, outer_tci)) = tag(memory) {
        let bytes = [outer.to_ne_bytes(), outer_tci.to_be_bytes()].concat();
        memory.frame.splice(TAG.start..TAG.start, bytes);
        memory.linear += TAG.len();
    }
    set_tag(memory, Some((protocol, tci)));
    refresh(memory);
}

/// `bpf_skb_vlan_pop`: the tag beside the frame, or else the one in it; the next one in it moves beside it.
/// False where the frame is too short.
pub(crate) fn pop_tag(memory: &mut Memory) -> bool {
    let first = if tag(memory).is_some() { Ok(None) } else { take_out(memory) };
    set_tag(memory, None);
    let next = first.and_then(|_| take_out(memory));
    let is_done = next.is_ok();
    set_tag(memory, next.unwrap_or_default());
    refresh(memory);
    is_done
}

/// The frame ends too soon behind a tag.
#[derive(Debug)]
struct TooShort;

/// Takes the first tag out of the frame itself.
fn take_out(memory: &mut Memory) -> Result<Option<(u16, u16)>, TooShort> {
    let Some(&[first, second, high, low]) = memory.frame.get(TAG) else { return Ok(None) };
    if ![[0x81, 0x00], [0x88, 0xa8]].contains(&[first, second]) {
        return Ok(None);
    }
    if memory.frame.len() < TAGGED {
        return Err(TooShort);
    }
    memory.frame.drain(TAG);
    memory.linear = memory.linear.saturating_sub(TAG.len());
    Ok(Some((u16::from_ne_bytes([first, second]), u16::from_be_bytes([high, low]))))
}

/// The tag beside the frame.
pub(crate) fn tag(memory: &Memory) -> Option<(u16, u16)> {
    let context = &memory.context;
    (get(context, VLAN_PRESENT) != 0)
        .then(|| (get(context, VLAN_PROTOCOL) as u16, get(context, VLAN_TCI) as u16))
}

fn set_tag(memory: &mut Memory, tag: Option<(u16, u16)>) {
    let (protocol, tci) = tag.unwrap_or_default();
    put(&mut memory.context, VLAN_PRESENT, tag.is_some().into());
    put(&mut memory.context, VLAN_PROTOCOL, protocol.into());
    put(&mut memory.context, VLAN_TCI, tci.into());
}

/// Says where the frame is now.
fn refresh(memory: &mut Memory) {
    let (length, end) = (memory.frame.len() as u32, FRAME as u32 + memory.linear as u32);
    put(&mut memory.context, LENGTH, length);
    put(&mut memory.context, DATA, FRAME as u32);
    put(&mut memory.context, DATA_END, end);
}

fn put(context: &mut [u8], at: usize, value: u32) {
    context[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

fn get(context: &[u8], at: usize) -> u32 {
    context.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_ne_bytes)
}
