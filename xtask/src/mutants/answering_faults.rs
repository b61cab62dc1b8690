//! Faults in answering who asks for an address.

use super::fault::{Fault, Judge};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "probe-answered",
        file: "ebpf/src/stages/neighbor_proxy/mod.rs",
        find: "!request.asker.is_unspecified() && ",
        replace: "",
        why: "a container that looks for a duplicate of its address would be told that there is one, or miss it",
        judge: Judge::Host,
    },
    Fault {
        name: "announcement-answered",
        file: "ebpf/src/stages/neighbor_proxy/mod.rs",
        find: " && !request.asker.is(request.target)",
        replace: "",
        why: "nobody would hear where an address has moved to",
        judge: Judge::Host,
    },
    Fault {
        name: "answered-across-isolation",
        file: "ebpf/src/stages/neighbor_proxy/mod.rs",
        find: "ifindex != here && apart == 0 && ",
        replace: "",
        why: "isolated containers would find each other",
        judge: Judge::Host,
    },
    Fault {
        name: "answered-across-vlans",
        file: "ebpf/src/stages/neighbor_proxy/mod.rs",
        find: "AddressKey::new(bridge, within.vid, request.target)",
        replace: "AddressKey::new(bridge, 10, request.target)",
        why: "a container of one VLAN would be told of one of another",
        judge: Judge::Host,
    },
    Fault {
        name: "answered-for-the-absent",
        file: "ebpf/src/stages/neighbor_proxy/mod.rs",
        find: "(station.flags & STATION_PEER_UP != 0).then_some(",
        replace: "Some(",
        why: "a container whose link is down would seem to be there",
        judge: Judge::Host,
    },
    Fault {
        name: "reply-taken-for-question",
        file: "ebpf/src/stages/neighbor_proxy/arp.rs",
        find: "arp.operation == ArpOperation::Request && ",
        replace: "",
        why: "announcements by ARP replies would end at the programs",
        judge: Judge::Host,
    },
    Fault {
        name: "forwarded-solicitation-believed",
        file: "ebpf/src/stages/neighbor_proxy/nd.rs",
        find: "        && head.hop_limit == HOP_LIMIT\n",
        replace: "",
        why: "a stranger behind a router could ask as a neighbour",
        judge: Judge::Host,
    },
    Fault {
        name: "advertisement-unsummed",
        file: "ebpf/src/stages/neighbor_proxy/nd.rs",
        find: "        .half(b, e)\n",
        replace: "",
        why: "the asker would drop every advertisement",
        judge: Judge::Host,
    },
    Fault {
        name: "second-half-forgotten",
        file: "ebpf/programs/src/main.rs",
        find: "=> subprograms::answer_container::<FRAMED>(skb)",
        replace: "=> -1",
        why: "every port of the bridge would hear every question, and none be counted",
        judge: Judge::Loaded,
    },
];
