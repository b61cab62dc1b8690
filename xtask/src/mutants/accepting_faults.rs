//! Faults in what others' rules have let through.

use super::fault::{Fault, Judge};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "never-asked-again",
        file: "ebpf/src/stages/accept.rs",
        find: "tables.boot_time().saturating_sub(seen) < heeding.lease",
        replace: "seen != 0",
        why: "a rule that changes would never stop a flow",
        judge: Judge::Host,
    },
    Fault {
        name: "accepted-unanswered",
        file: "ebpf/src/stages/accept.rs",
        find: " || one == 0 || other == 0",
        replace: "",
        why: "a flow whose answers rules refuse would be fast one way",
        judge: Judge::Host,
    },
    Fault {
        name: "accepted-at-any-port",
        file: "ebpf/src/stages/accept.rs",
        find: " && low == one && high == other",
        replace: "",
        why: "another container would use what was let through for this one",
        judge: Judge::Host,
    },
    Fault {
        name: "earlier-rules-count",
        file: "ebpf/src/stages/accept.rs",
        find: "flow.generation == heeding.generation",
        replace: "true",
        why: "what rules let through that are gone would go on",
        judge: Judge::Host,
    },
    Fault {
        name: "edges-on-the-fast-path",
        file: "ebpf/src/stages/accept.rs",
        find: " && !self.is_edge()",
        replace: "",
        why: "connection tracking would not hear of connections that begin and end",
        judge: Judge::Host,
    },
    Fault {
        name: "routed-is-accepted",
        file: "ebpf/src/stages/track_kernel_flow.rs",
        find: " && origin != port.bridge",
        replace: "",
        why: "what the kernel has routed or translated would be no flow of its own, and its answers untranslated",
        judge: Judge::Host,
    },
    Fault {
        name: "accepted-for-others",
        file: "ebpf/src/stages/track_kernel_flow.rs",
        find: "origin == owner.ifindex && ",
        replace: "",
        why: "a container that speaks as another would open flows for it",
        judge: Judge::Host,
    },
    Fault {
        name: "accepted-by-a-tag",
        file: "ebpf/src/stages/track_kernel_flow.rs",
        find: " && !frame.is_tagged()",
        replace: "",
        why: "a tagged frame, which rules of IP do not see, would open a flow",
        judge: Judge::Host,
    },
];
