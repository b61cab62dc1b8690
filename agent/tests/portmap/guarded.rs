//! Host ports of a restricted container: its programs keep their order, whichever of them was lost.

use aya::programs::{SchedClassifier, TcAttachType};
use serde_json::json;
use shunt_lab::Protocol;

use crate::hooks;
use crate::stage::{NODE, Stage, mapping};

/// The programs of a container's port in their order, by the kernel's own word.
fn order(stage: &Stage) -> Vec<String> {
    let port = stage.node.agent().port("one").unwrap().host_ifname;
    let of = |direction| {
        let (_, programs) = SchedClassifier::query_tcx(&port, direction).unwrap();
        programs.iter().map(|program| program.name_as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let ask = || [TcAttachType::Ingress, TcAttachType::Egress].map(of).concat();
    stage.node.namespace().enter(ask).unwrap()
}

#[test]
fn a_restricted_container_answers_by_its_host_port_again_whichever_program_it_has_lost() {
    let mut stage = Stage::new();
    stage.network = stage.network.with("ipspoofchk", json!(true)).with("ipMasq", json!(true));
    stage.add("one", &[mapping(8080, 7000, "tcp")]);
    let _echo = stage.echo(0, 7000);
    let in_order = order(&stage);
    assert_eq!(in_order, ["from_container", "from_mapped", "guard_from", "to_container", "guard_to"]);
    for lost in &in_order {
        let port = stage.node.agent().port("one").unwrap().host_ifname;
        let programs = stage.node.agent().status().unwrap().programs.into_iter();
        let programs: Vec<_> =
            programs.filter(|program| program.name == *lost && program.ifname == port).collect();
        assert_eq!(programs.len(), 1, "{lost}");
        hooks::detach(&stage.node, &programs);
        stage.wait_until(&format!("{lost} is back in its place"), |_| order(&stage) == in_order);
        for to in NODE {
            stage.open(&stage.outside, Protocol::Tcp, to, 8080).chat(20, 1000).unwrap();
        }
    }
}
