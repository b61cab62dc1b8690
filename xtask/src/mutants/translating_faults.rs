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
];
