//! The kernel's helpers, as far as our programs call them (`enum bpf_func_id` of `linux/bpf.h`).

use crate::fault::Fault;
use crate::kernel::{FIB_LOOKUP_BYTES, Kernel};
use crate::memory::{FRAME, MAPS};
use crate::outcome::Redirect;
use crate::socket_buffer;

const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const MONOTONIC_CLOCK: i32 = 5;
const STORE_BYTES: i32 = 9;
const L4_CHECKSUM_REPLACE: i32 = 11;
const CLONE_REDIRECT: i32 = 13;
const VLAN_PUSH: i32 = 18;
const VLAN_POP: i32 = 19;
const REDIRECT: i32 = 23;
const LOAD_BYTES: i32 = 26;
const CHECKSUM_DIFFERENCE: i32 = 28;
const CHANGE_TYPE: i32 = 32;
const CHANGE_TAIL: i32 = 38;
const PULL_DATA: i32 = 39;
const CHECKSUM_UPDATE: i32 = 40;
const CHANGE_HEAD: i32 = 43;
const ADJUST_ROOM: i32 = 50;
const FIB_LOOKUP: i32 = 69;
const FIND_UDP_SOCKET: i32 = 85;
const RELEASE_SOCKET: i32 = 86;
const FIND_TCP_SOCKET: i32 = 99;
const BOOT_CLOCK: i32 = 125;
const RING_OUTPUT: i32 = 130;
const REDIRECT_NEIGHBOR: i32 = 152;
const REDIRECT_PEER: i32 = 155;
pub(crate) const LOOP: i32 = 181;

/// Of `bpf_redirect`'s flags: in by the interface, not out of it.
const BPF_F_INGRESS: u64 = 1;

/// Of `bpf_skb_adjust_room`'s places: right behind the Ethernet header.
const BPF_ADJ_ROOM_MAC: u64 = 1;

/// What the redirecting helpers return.
const TC_ACT_REDIRECT: i64 = 7;

/// `-ENOMEM`.
const NO_MEMORY: i64 = -12;

/// Says of a checksum that 0 stands for none.
const MARK_MANGLED_0: u64 = 1 << 5;

/// Calls a helper.
pub(crate) fn call(
    kernel: &mut Kernel<'_>,
    number: i32,
    [one, two, three, four, five]: [u64; 5],
) -> Result<i64, Fault> {
    Ok(match number {
        MAP_LOOKUP | MAP_UPDATE | MAP_DELETE => map(kernel, number, [one, two, three, four])?,
        MONOTONIC_CLOCK => kernel.surroundings.monotonic() as i64,
        BOOT_CLOCK => kernel.surroundings.boot_time() as i64,
        STORE_BYTES => {
            let bytes = kernel.memory.bytes(three, four as usize)?.to_vec();
            kernel.memory.bytes_mut(FRAME + (two & 0xffff_ffff), bytes.len())?.copy_from_slice(&bytes);
            0
        }
        LOAD_BYTES => {
            let bytes = socket_buffer::read(&kernel.memory, two as u32 as usize, four as usize)?.to_vec();
            kernel.memory.bytes_mut(three, bytes.len())?.copy_from_slice(&bytes);
            0
        }
        CHANGE_TAIL => {
            socket_buffer::change_tail(&mut kernel.memory, two as u32 as usize);
            0
        }
        // Behind the Ethernet header, and never more of it.
        ADJUST_ROOM if (two as i32) < 0 && three == BPF_ADJ_ROOM_MAC => {
            socket_buffer::take_room(&mut kernel.memory, (two as i32).unsigned_abs() as usize)?;
            0
        }
        L4_CHECKSUM_REPLACE => replace_checksum(kernel, two, three, four, five)?,
        // Of what is new only: the sum of its half words, onto another one.
        CHECKSUM_DIFFERENCE if two == 0 => {
            let halves = kernel.memory.bytes(three, four as usize)?.chunks_exact(2);
            let sum: u64 = halves.map(|half| u64::from(u16::from_ne_bytes([half[0], half[1]]))).sum();
            let sum = sum + (five & 0xffff_ffff);
            ((sum & 0xffff_ffff) + (sum >> 32)) as i64
        }
        // Of what the device has summed; no frame here comes from a device.
        CHECKSUM_UPDATE => 0,
        CLONE_REDIRECT => {
            let tag = socket_buffer::tag(&kernel.memory).map(|(_, tci)| tci);
            kernel.copies.push((two as u32, tag));
            0
        }
        VLAN_PUSH => {
            socket_buffer::push_tag(&mut kernel.memory, two as u16, three as u16);
            0
        }
        VLAN_POP => {
            if socket_buffer::pop_tag(&mut kernel.memory) {
                0
            } else {
                NO_MEMORY
            }
        }
        CHANGE_TYPE => {
            socket_buffer::change_type(&mut kernel.memory, two as u32);
            0
        }
        CHANGE_HEAD => {
            socket_buffer::push_head(&mut kernel.memory, two as u32 as usize);
            0
        }
        PULL_DATA => {
            socket_buffer::pull(&mut kernel.memory, two as u32 as usize);
            0
        }
        FIB_LOOKUP => {
            let mut lookup = [0; FIB_LOOKUP_BYTES];
            lookup.copy_from_slice(kernel.memory.bytes(two, FIB_LOOKUP_BYTES)?);
            let answer = kernel.surroundings.route(lookup);
            kernel.memory.bytes_mut(two, FIB_LOOKUP_BYTES)?.copy_from_slice(&answer.lookup);
            answer.code
        }
        // What is found is given back, and never looked into.
        FIND_TCP_SOCKET | FIND_UDP_SOCKET => {
            let tuple = kernel.memory.bytes(two, three as usize)?;
            i64::from(kernel.surroundings.has_socket(tuple))
        }
        RELEASE_SOCKET => 0,
        RING_OUTPUT => {
            // Nobody reads it; what is written has to be there.
            kernel.memory.bytes(two, three as usize)?;
            0
        }
        REDIRECT if two & BPF_F_INGRESS != 0 => redirect(kernel, Redirect::Into(one as u32)),
        REDIRECT => redirect(kernel, Redirect::Port(one as u32)),
        REDIRECT_PEER => redirect(kernel, Redirect::Peer(one as u32)),
        REDIRECT_NEIGHBOR => redirect(kernel, Redirect::Neighbor(one as u32)),
        _ => return Err(Fault::Helper(number)),
    })
}

fn redirect(kernel: &mut Kernel<'_>, to: Redirect) -> i64 {
    kernel.redirect = Some(to);
    TC_ACT_REDIRECT
}

fn map(kernel: &mut Kernel<'_>, number: i32, [map, key, value, flags]: [u64; 4]) -> Result<i64, Fault> {
    let (maps, memory) = (&mut kernel.maps, &mut kernel.memory);
    let found = map.checked_sub(MAPS).and_then(|place| maps.get_mut(place as usize));
    let found = found.ok_or(Fault::Map(map))?;
    let key = memory.bytes(key, found.key_bytes)?.to_vec();
    Ok(match number {
        MAP_LOOKUP => found.look_up(&key, memory) as i64,
        MAP_UPDATE => {
            let value = memory.bytes(value, found.value_bytes)?.to_vec();
            found.update(&key, &value, flags, memory)
        }
        _ => found.delete(&key),
    })
}

/// `bpf_l4_csum_replace` of a complete checksum, by a difference (`from` is 0).
fn replace_checksum(
    kernel: &mut Kernel<'_>,
    offset: u64,
    from: u64,
    difference: u64,
    flags: u64,
) -> Result<i64, Fault> {
    let address = FRAME + offset;
    if from != 0 {
        return Err(Fault::Helper(L4_CHECKSUM_REPLACE));
    }
    let old = kernel.memory.load(address, 2)? as u16;
    let may_be_none = flags & MARK_MANGLED_0 != 0;
    if may_be_none && old == 0 {
        return Ok(0);
    }
    let sum = u64::from(!old) + (difference as u32 as u64 & 0xffff) + (difference as u32 as u64 >> 16);
    let folded = (sum & 0xffff) + (sum >> 16);
    let new = !(((folded & 0xffff) + (folded >> 16)) as u16);
    let new = if may_be_none && new == 0 { 0xffff } else { new };
    kernel.memory.store(address, 2, new.into())?;
    Ok(0)
}
