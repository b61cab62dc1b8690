//! Faults in who may have how many connections.

use super::fault::{Fault, Judge};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "half-open-assured",
        file: "ebpf/src/nat/connection.rs",
        find: "let lives = matches!(phase(Shown(one.shown), Shown(other.shown)), Phase::Established | Phase::Closing);",
        replace: "let lives = true;",
        why: "openings that nobody answers would take the room of everybody's connections",
        judge: Judge::Host,
    },
    Fault {
        name: "question-assured",
        file: "ebpf/src/nat/connection.rs",
        find: "lives && (is_tcp || now.saturating_sub(one.begun) >= STREAM)",
        replace: "lives",
        why: "a container's DNS questions would use up its connections",
        judge: Judge::Host,
    },
    Fault {
        name: "openings-free",
        file: "ebpf/src/stages/share.rs",
        find: "    tables.charge_opening(slot, side, price);\n",
        replace: "",
        why: "one container's flood would have everybody's openings forgotten before they are answered",
        judge: Judge::Host,
    },
    Fault {
        name: "openings-saved-up",
        file: "ebpf/src/stages/share.rs",
        find: "    if due < now {\n        tables.begin_openings(slot, side, now);\n    }\n",
        replace: "",
        why: "a container that has opened none for an hour could flood for as long",
        judge: Judge::Host,
    },
    Fault {
        name: "limit-ignored",
        file: "ebpf/src/abi/share.rs",
        find: "self.most == 0 || self.assured < self.most as i64",
        replace: "true",
        why: "one container could take the room of everybody's connections",
        judge: Judge::Host,
    },
    Fault {
        name: "ended-kept",
        file: "ebpf/programs/src/kernel_tables/flows.rs",
        find: "    release(other.0, slot);\n    release(mine.0, slot);\n",
        replace: "",
        why: "a container that opens and closes would have used up its connections in seconds",
        judge: Judge::Loaded,
    },
    Fault {
        name: "answers-not-paid-back",
        file: "ebpf/programs/src/kernel_tables/flows.rs",
        find: "                shares::pay_back((*own).slot(), (*own).side());\n",
        replace: "",
        why: "a busy resolver would be held to the rate of those whom nobody answers",
        judge: Judge::Loaded,
    },
];
