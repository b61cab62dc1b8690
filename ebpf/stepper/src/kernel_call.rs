//! The kernel's helpers, as far as our programs call them (`enum bpf_func_id` of `linux/bpf.h`).

use crate::fault::Fault;
use crate::machine::Machine;
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

/// Bytes of `struct bpf_fib_lookup`.
pub const FIB_LOOKUP_BYTES: usize = 64;

/// What the kernel says of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FibAnswer {
    /// `BPF_FIB_LKUP_RET_…`.
    pub code: i64,
    /// The question, with the answers written into it.
    pub lookup: [u8; FIB_LOOKUP_BYTES],
}

/// What a program asks that is in no map.
pub trait Surroundings {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    fn monotonic(&self) -> u64;

    /// Nanoseconds of `CLOCK_BOOTTIME`.
    fn boot_time(&self) -> u64;

    /// Whether the node has a socket for a packet; `tuple` is a `struct bpf_sock_tuple` of either family.
    fn has_socket(&self, tuple: &[u8]) -> bool;

    /// The kernel's routes; `lookup` is a `struct bpf_fib_lookup`.
    fn route(&self, lookup: [u8; FIB_LOOKUP_BYTES]) -> FibAnswer;
}

/// Calls a helper.
pub(crate) fn call(
    machine: &mut Machine<'_>,
    surroundings: &dyn Surroundings,
    number: i32,
    [one, two, three, four, five]: [u64; 5],
) -> Result<i64, Fault> {
    Ok(match number {
        MAP_LOOKUP | MAP_UPDATE | MAP_DELETE => map(machine, number, [one, two, three, four])?,
        MONOTONIC_CLOCK => surroundings.monotonic() as i64,
        BOOT_CLOCK => surroundings.boot_time() as i64,
        STORE_BYTES => {
            let bytes = machine.memory.bytes(three, four as usize)?.to_vec();
            machine.memory.bytes_mut(FRAME + (two & 0xffff_ffff), bytes.len())?.copy_from_slice(&bytes);
            0
        }
        LOAD_BYTES => {
            let bytes = socket_buffer::read(&machine.memory, two as u32 as usize, four as usize)?.to_vec();
            machine.memory.bytes_mut(three, bytes.len())?.copy_from_slice(&bytes);
            0
        }
        CHANGE_TAIL => {
            socket_buffer::change_tail(&mut machine.memory, two as u32 as usize);
            0
        }
        // Behind the Ethernet header, and never more of it.
        ADJUST_ROOM if (two as i32) < 0 && three == BPF_ADJ_ROOM_MAC => {
            socket_buffer::take_room(&mut machine.memory, (two as i32).unsigned_abs() as usize)?;
            0
        }
        L4_CHECKSUM_REPLACE => replace_checksum(machine, two, three, four, five)?,
        // Of what is new only: the sum of its half words, onto another one.
        CHECKSUM_DIFFERENCE if two == 0 => {
            let halves = machine.memory.bytes(three, four as usize)?.chunks_exact(2);
            let sum: u64 = halves.map(|half| u64::from(u16::from_ne_bytes([half[0], half[1]]))).sum();
            let sum = sum + (five & 0xffff_ffff);
            ((sum & 0xffff_ffff) + (sum >> 32)) as i64
        }
        // Of what the device has summed; no frame here comes from a device.
        CHECKSUM_UPDATE => 0,
        CLONE_REDIRECT => {
            let tag = socket_buffer::tag(&machine.memory).map(|(_, tci)| tci);
            machine.copies.push((two as u32, tag));
            0
        }
        VLAN_PUSH => {
            socket_buffer::push_tag(&mut machine.memory, two as u16, three as u16);
            0
        }
        VLAN_POP => {
            if socket_buffer::pop_tag(&mut machine.memory) {
                0
            } else {
                NO_MEMORY
            }
        }
        CHANGE_TYPE => {
            socket_buffer::change_type(&mut machine.memory, two as u32);
            0
        }
        CHANGE_HEAD => {
            socket_buffer::push_head(&mut machine.memory, two as u32 as usize);
            0
        }
        PULL_DATA => {
            socket_buffer::pull(&mut machine.memory, two as u32 as usize);
            0
        }
        FIB_LOOKUP => {
            let mut lookup = [0; FIB_LOOKUP_BYTES];
            lookup.copy_from_slice(machine.memory.bytes(two, FIB_LOOKUP_BYTES)?);
            let answer = surroundings.route(lookup);
            machine.memory.bytes_mut(two, FIB_LOOKUP_BYTES)?.copy_from_slice(&answer.lookup);
            answer.code
        }
        // What is found is given back, and never looked into.
        FIND_TCP_SOCKET | FIND_UDP_SOCKET => {
            let tuple = machine.memory.bytes(two, three as usize)?;
            i64::from(surroundings.has_socket(tuple))
        }
        RELEASE_SOCKET => 0,
        REDIRECT if two & BPF_F_INGRESS != 0 => redirect(machine, Redirect::Into(one as u32)),
        REDIRECT => redirect(machine, Redirect::Port(one as u32)),
        REDIRECT_PEER => redirect(machine, Redirect::Peer(one as u32)),
        REDIRECT_NEIGHBOR => redirect(machine, Redirect::Neighbor(one as u32)),
        _ => return Err(Fault::Helper(number)),
    })
}

fn redirect(machine: &mut Machine<'_>, to: Redirect) -> i64 {
    machine.redirect = Some(to);
    TC_ACT_REDIRECT
}

fn map(machine: &mut Machine<'_>, number: i32, [map, key, value, flags]: [u64; 4]) -> Result<i64, Fault> {
    let (maps, memory) = (&mut machine.maps, &mut machine.memory);
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
    machine: &mut Machine<'_>,
    offset: u64,
    from: u64,
    difference: u64,
    flags: u64,
) -> Result<i64, Fault> {
    let address = FRAME + offset;
    if from != 0 {
        return Err(Fault::Helper(L4_CHECKSUM_REPLACE));
    }
    let old = machine.memory.load(address, 2)? as u16;
    let may_be_none = flags & MARK_MANGLED_0 != 0;
    if may_be_none && old == 0 {
        return Ok(0);
    }
    let sum = u64::from(!old) + (difference as u32 as u64 & 0xffff) + (difference as u32 as u64 >> 16);
    let folded = (sum & 0xffff) + (sum >> 16);
    let new = !(((folded & 0xffff) + (folded >> 16)) as u16);
    let new = if may_be_none && new == 0 { 0xffff } else { new };
    machine.memory.store(address, 2, new.into())?;
    Ok(0)
}
