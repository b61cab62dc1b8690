//! Faults in what keeps containers' ports and the kernel's apart.

use super::fault::{Fault, Judge};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "answers-to-the-node-published",
        file: "ebpf/src/programs/from_wire.rs",
        find: "        claim::check(&segment, tables)?;\n",
        replace: "",
        why: "a media server's published ports would take the answers to the node's own questions",
        judge: Judge::Host,
    },
    Fault {
        name: "answers-within-published",
        file: "ebpf/src/nat/dnat.rs",
        find: "    claim::check_within(segment, tables)?;\n",
        replace: "",
        why: "a container's answer to the node would go to whoever has published the node's port",
        judge: Judge::Host,
    },
    Fault {
        name: "claimed-for-ever",
        file: "ebpf/src/nat/claim.rs",
        find: "tables.claimed(answer).is_some_and(|seen| now.saturating_sub(seen) < longest)",
        replace: "tables.claimed(answer).is_some()",
        why: "no container would ever get a port by which the node has asked once",
        judge: Judge::Host,
    },
    Fault {
        name: "claims-not-renewed",
        file: "ebpf/src/nat/claim.rs",
        find: "        tables.claim(answer, now);\n",
        replace: "",
        why: "a container would take a port from a flow of the node's that has gone on for two minutes",
        judge: Judge::Host,
    },
    Fault {
        name: "kernels-unclaimed",
        file: "ebpf/src/programs/to_wire.rs",
        find: "            tables.claim(&segment.key.reversed(OUTSIDE), tables.boot_time());\n",
        replace: "",
        why: "a container would get what the kernel has masqueraded for another one",
        judge: Judge::Host,
    },
    Fault {
        name: "claims-unheeded",
        file: "ebpf/src/nat/snat.rs",
        find: "!claim::holds(&becomes.reversed(OUTSIDE), now, tables)",
        replace: "true",
        why: "a connection of the node's own would be answered into a container",
        judge: Judge::Host,
    },
    Fault {
        name: "collision-unheeded",
        file: "ebpf/src/programs/to_wire.rs",
        find: "    if !is_held(segment, tables) {",
        replace: "    if true {",
        why: "the node would not hear its answers where a container has the port",
        judge: Judge::Host,
    },
    Fault {
        name: "translated-for-the-kernels",
        file: "ebpf/src/programs/to_wire.rs",
        find: "    if is_container(packet.origin(), tables) {",
        replace: "    if false {",
        why: "a container's own packets would be given another port on their way out",
        judge: Judge::Host,
    },
    Fault {
        name: "another-port-not-undone",
        file: "ebpf/src/programs/own_return.rs",
        find: "    port_change::write(packet, segment, &becomes);\n",
        replace: "",
        why: "what returns to the node would come by a port that it does not know",
        judge: Judge::Host,
    },
];
