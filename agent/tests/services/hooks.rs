//! Taking the programs off the interfaces behind the agent's back, as `bpftool` or a mistaken script does.

use serde_json::Value;
use shunt_agent_api::ProgramMode;
use shunt_lab::{Node, run};

/// Detaches every program of the node's agent. The agent is dead, or would attach them again; `programs` is what it
/// last reported.
pub(crate) fn detach(node: &Node, programs: &[shunt_agent_api::ProgramReport]) {
    let links: Value = serde_json::from_str(&run("bpftool", &["--json", "link", "show"]).unwrap()).unwrap();
    for program in programs {
        match program.mode {
            ProgramMode::Tcx => detach_links(&links, program.id),
            ProgramMode::Clsact => {
                node.namespace().command("tc", &["qdisc", "del", "dev", &program.ifname, "clsact"]).ok();
            }
            ProgramMode::Xdp | ProgramMode::Cgroup => unreachable!("no port has one of these"),
        }
    }
}

/// Program ids may be shared by several links (one program on every port), which are detached by the first report of the
/// program already. By the time of another the agent may have put new links in their place: the old ones are no more.
fn detach_links(links: &Value, program: u32) {
    for link in links.as_array().unwrap().iter().filter(|link| link["prog_id"] == program) {
        let id = link["id"].to_string();
        if let Err(error) = run("bpftool", &["link", "detach", "id", &id]) {
            assert!(error.to_string().contains("No such file"), "{error:#}");
        }
    }
}
