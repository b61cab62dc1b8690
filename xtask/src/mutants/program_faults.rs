//! Faults on the kernel's side of the journey: how a program reads its packet and its maps, and what it answers.

use super::fault::{Fault, Judge};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "drop-lets-through",
        file: "ebpf/programs/src/action.rs",
        find: "=> TC_ACT_SHOT",
        replace: "=> TC_ACT_UNSPEC",
        why: "what is dropped would be delivered by the kernel",
        judge: Judge::Loaded,
    },
    Fault {
        name: "program-on-the-wrong-journey",
        file: "ebpf/programs/src/main.rs",
        find: "journey::from_container(&mut packet, here, Missing::Pass",
        replace: "journey::to_container(&mut packet, here, Missing::Pass",
        why: "every packet of a container would be left to the kernel",
        judge: Judge::Loaded,
    },
    Fault {
        name: "counters-swapped",
        file: "ebpf/programs/src/kernel_tables.rs",
        find: "=> &mut counters.to_fast",
        replace: "=> &mut counters.to_kernel",
        why: "the fast path would look unused",
        judge: Judge::Loaded,
    },
    Fault {
        name: "note-not-heeded",
        file: "ebpf/programs/src/halves.rs",
        find: "if PortsNote::is_there(skb) {",
        replace: "if !PortsNote::is_there(skb) {",
        why: "SCTP packets to another port would be lost",
        judge: Judge::Loaded,
    },
    Fault {
        name: "tag-inverted",
        file: "ebpf/programs/src/context.rs",
        find: "(present != 0)",
        replace: "(present == 0)",
        why: "untagged frames would be taken for tagged ones",
        judge: Judge::Loaded,
    },
    Fault {
        name: "asking-forgotten",
        file: "ebpf/programs/src/kernel_tables.rs",
        find: "(*port).asks = PATH_ASK",
        replace: "(*port).asks = PATH_FAST",
        why: "replies of a Service would not be translated back",
        judge: Judge::Loaded,
    },
];
