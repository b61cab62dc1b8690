//! Faults in how long a translated connection lives, and who may end it.

use super::fault::{Fault, Judge};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "forged-fin-believed",
        file: "ebpf/src/nat/connection.rs",
        find: "side.has(Shown::FINISHED) && other.has(Shown::AGREED)",
        replace: "side.has(Shown::FINISHED)",
        why: "anybody could have a connection forgotten after four idle minutes",
        judge: Judge::Host,
    },
    Fault {
        name: "forged-reset-believed",
        file: "ebpf/src/abi/connection.rs",
        find: "!Shown(self.shown).has(Shown::KNOWN) || number.wrapping_sub(self.acknowledged) < WINDOW",
        replace: "{ let _ = number; true }",
        why: "anybody could have a connection forgotten after four idle minutes, and its tuple taken",
        judge: Judge::Host,
    },
    Fault {
        name: "old-fin-believed",
        file: "ebpf/src/abi/connection.rs",
        find: "(number.wrapping_sub(self.acknowledged) as i32) > 0",
        replace: "(number.wrapping_sub(self.acknowledged) as i32) >= 0",
        why: "a FIN at what was acknowledged last would be acknowledged by itself",
        judge: Judge::Host,
    },
    Fault {
        name: "reset-for-ever",
        file: "ebpf/src/abi/connection.rs",
        find: "self.shown & !Shown::RESET.0 | sent",
        replace: "self.shown | sent",
        why: "one forged packet would end anybody's idle connection in minutes",
        judge: Judge::Host,
    },
    Fault {
        name: "old-state-met",
        file: "ebpf/src/nat/connection.rs",
        find: "        _ if is_over => Fate::Strays,\n",
        replace: "",
        why: "a packet of somebody new would reach the container that used the tuple before",
        judge: Judge::Host,
    },
    Fault {
        name: "half-closed-is-closed",
        file: "ebpf/src/nat/connection.rs",
        find: "(true, false) | (false, true) => Phase::Closing",
        replace: "(true, false) | (false, true) => Phase::Closed",
        why: "a client that has sent its request and its FIN would lose a slow answer",
        judge: Judge::Host,
    },
];
