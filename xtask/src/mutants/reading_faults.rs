//! Faults in reading a packet: what the later stages are told would be wrong.

use super::fault::{Fault, Judge};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "ipv4-options-ignored",
        file: "ebpf/src/wire/ipv4.rs",
        find: "payload: offset + words * WORD_BYTES",
        replace: "payload: offset + 20",
        why: "a packet with options would be taken for another flow",
        judge: Judge::Host,
    },
    Fault {
        name: "ipv4-fragment-mask-short",
        file: "ebpf/src/wire/ipv4.rs",
        find: "OFFSET_MASK: u16 = 0x1fff",
        replace: "OFFSET_MASK: u16 = 0x0fff",
        why: "a fragment far into its datagram would be taken for the first",
        judge: Judge::Host,
    },
    Fault {
        name: "ipv6-extension-short",
        file: "ebpf/src/wire/ipv6.rs",
        find: "(u32::from(extension.length) + 1) * 8",
        replace: "u32::from(extension.length) * 8",
        why: "ports would be read eight bytes too early, or the walk would not end",
        judge: Judge::Host,
    },
    Fault {
        name: "icmp-error-is-a-flow",
        file: "ebpf/src/wire/transport.rs",
        find: "header.kind == request || header.kind == reply",
        replace: "true",
        why: "an ICMP error about a kernel flow would pass its conntrack by",
        judge: Judge::Host,
    },
    Fault {
        name: "group-bit-wrong",
        file: "ebpf/src/wire/mac.rs",
        find: "& 1 == 1",
        replace: "& 2 == 2",
        why: "a broadcast would be looked up, and containers' own addresses flooded",
        judge: Judge::Host,
    },
];
