//! Taking the programs off the interfaces behind the agent's back, as `bpftool` or a mistaken script does.

use std::thread;
use std::time::Duration;

use serde_json::Value;
use shunt_agent_api::ProgramMode;
use shunt_lab::{Node, run};

/// How often all links are listed, at most.
const TRIES: u32 = 20;

/// Detaches these programs of the node's agent, which it has reported; while it lives it attaches them again.
pub(crate) fn detach(node: &Node, programs: &[shunt_agent_api::ProgramReport]) {
    let links = links();
    for program in programs {
        match program.mode {
            ProgramMode::Tcx => detach_links(&links, program.id),
            ProgramMode::Clsact => detach_filter(node, program),
            ProgramMode::Xdp | ProgramMode::Cgroup => unreachable!("no port has one of these"),
        }
    }
}

/// Every link of the machine. Other tests' come and go, and `bpftool` gives up where one goes while it looks at it.
fn links() -> Value {
    let list = || run("bpftool", &["--json", "link", "show"]);
    let listed = (1..TRIES).find_map(|_| {
        let listed = list().ok();
        if listed.is_none() {
            thread::sleep(Duration::from_millis(20));
        }
        listed
    });
    serde_json::from_str(&listed.unwrap_or_else(|| list().unwrap())).unwrap()
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

/// Its interface may be gone.
fn detach_filter(node: &Node, program: &shunt_agent_api::ProgramReport) {
    let tc = |arguments: &[&str]| node.namespace().command("tc", arguments);
    for direction in ["ingress", "egress"] {
        let place = ["dev", &program.ifname, direction];
        let Ok(listed) = tc(&[&["-json", "filter", "show"], &place[..]].concat()) else { continue };
        let filters: Value = serde_json::from_str(&listed).unwrap();
        let is_it = |filter: &&Value| filter["options"]["bpf_name"] == program.name;
        for filter in filters.as_array().unwrap().iter().filter(is_it) {
            let preference = filter["pref"].to_string();
            tc(&[&["filter", "del"], &place[..], &["pref", &preference]].concat()).unwrap();
        }
    }
}
