//! Faults in what translation computes.

use super::fault::{Fault, Judge};

pub(super) const FAULTS: &[Fault] = &[
    // checksum
    Fault {
        name: "carry-lost",
        file: "ebpf/src/translate/checksum.rs",
        find: "let once = (self.0 & 0xffff_ffff) + (self.0 >> 32);",
        replace: "let once = self.0 & 0xffff_ffff;",
        why: "one packet in a few would arrive with a wrong checksum, and be lost each time it is sent again",
        judge: Judge::Host,
    },
    Fault {
        name: "udp-zero-filled",
        file: "ebpf/src/translate/checksum.rs",
        find: "    if checksum == 0 {\n        return 0;\n    }\n",
        replace: "",
        why: "a datagram that was sent without a checksum would get a wrong one",
        judge: Judge::Host,
    },
    Fault {
        name: "udp-zero-sent",
        file: "ebpf/src/translate/checksum.rs",
        find: "0 => 0xffff,",
        replace: "0 => 0,",
        why: "a datagram would lose its checksum",
        judge: Judge::Host,
    },
    // crc32c
    Fault {
        name: "ports-not-counted",
        file: "ebpf/src/translate/crc32c.rs",
        find: "behind + PORTS_BYTES",
        replace: "behind",
        why: "no SCTP packet would arrive with a right checksum",
        judge: Judge::Host,
    },
    Fault {
        name: "long-packets-forgotten",
        file: "ebpf/src/translate/crc32c.rs",
        find: "const LENGTH_BITS: usize = 16;",
        replace: "const LENGTH_BITS: usize = 10;",
        why: "SCTP packets of a kilobyte and more would be lost",
        judge: Judge::Host,
    },
    // connection
    Fault {
        name: "reset-for-ever",
        file: "ebpf/src/translate/connection.rs",
        find: "(self.0 & !Self::RESET)",
        replace: "self.0",
        why: "one forged packet would end anybody's idle connection in minutes",
        judge: Judge::Host,
    },
    Fault {
        name: "old-state-met",
        file: "ebpf/src/translate/connection.rs",
        find: "        _ if is_over => Fate::Strays,\n",
        replace: "",
        why: "a packet of somebody new would reach the container that used the tuple before",
        judge: Judge::Host,
    },
    Fault {
        name: "half-closed-is-closed",
        file: "ebpf/src/translate/connection.rs",
        find: "(true, false) | (false, true) => Phase::Closing",
        replace: "(true, false) | (false, true) => Phase::Closed",
        why: "a client that has sent its request and its FIN would lose a slow answer",
        judge: Judge::Host,
    },
    // request
    Fault {
        name: "transit-captured",
        file: "ebpf/src/translate/request.rs",
        find: "if !tables.is_local(&segment.key.destination) {",
        replace: "if false {",
        why: "traffic through the node to somebody else's port would end in a container (GHSA-jv3w-x3r3-g6rm)",
        judge: Judge::Host,
    },
    Fault {
        name: "strays-begin",
        file: "ebpf/src/translate/request.rs",
        find: "None if asks => begin",
        replace: "None => begin",
        why: "any segment to a host port would make two entries, and a flood of them push out live connections",
        judge: Judge::Host,
    },
    Fault {
        name: "any-address-wins",
        file: "ebpf/src/translate/request.rs",
        find: "tables.mapping(&key).or(any)",
        replace: "any.or(tables.mapping(&key))",
        why: "a mapping of one address would never be used where the port is mapped for all",
        judge: Judge::Host,
    },
    Fault {
        name: "request-entry-forgotten",
        file: "ebpf/src/translate/request.rs",
        find: "    if !tables.replace_flow(&segment.key, &value) {",
        replace: "    if false {",
        why: "each packet of a connection would be a stray",
        judge: Judge::Host,
    },
    // answer
    Fault {
        name: "halves-not-compared",
        file: "ebpf/programs/src/kernel_tables.rs",
        find: "if (*mine).begun != (*other).begun {",
        replace: "if false {",
        why: "a half that was left over would be taken for another connection's",
        judge: Judge::Loaded,
    },
    // rewrite
    Fault {
        name: "hop-limit-kept",
        file: "ebpf/src/translate/rewrite.rs",
        find: "Hop { old: [ip.hop_limit, ip.protocol.0], new: [ip.hop_limit - 1, ip.protocol.0] }",
        replace: "Hop { old: [ip.hop_limit, ip.protocol.0], new: [ip.hop_limit, ip.protocol.0] }",
        why: "a packet in a routing loop would never die",
        judge: Judge::Host,
    },
    Fault {
        name: "port-not-summed",
        file: "ebpf/src/translate/rewrite.rs",
        find: "        .port(key.source_port, becomes.source_port)\n",
        replace: "",
        why: "no answer would arrive with a right checksum",
        judge: Judge::Host,
    },
    // mapped
    Fault {
        name: "answers-counted-twice",
        file: "ebpf/src/count.rs",
        find: "Verdict::Pass(PassReason::MayAnswer) => {}",
        replace: "Verdict::Pass(PassReason::MayAnswer) => tables.count(port.slot, Lane::FromKernel, bytes),",
        why: "reports would show each answer twice, once as the kernel's",
        judge: Judge::Host,
    },
    // deliver
    Fault {
        name: "answers-too-big",
        file: "ebpf/src/deliver.rs",
        find: "if packet.segment_size() == 0 { (packet.length() - frame.payload) as u16 } else { 0 }",
        replace: "0",
        why: "an answer that does not fit the route would be lost, and its sender not told",
        judge: Judge::Host,
    },
    Fault {
        name: "last-hop-translated",
        file: "ebpf/src/deliver.rs",
        find: "if segment.ip.hop_limit <= 1 {",
        replace: "if segment.ip.hop_limit == 0 {",
        why: "traceroute would not see the node",
        judge: Judge::Host,
    },
];
