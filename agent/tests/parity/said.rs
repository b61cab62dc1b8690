//! What the debug build says through aya-log is what it decided, and the shipped programs say nothing.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;

use aya::EbpfLoader;
use log::{Log, Metadata, Record};
use shunt_agent::datapath::decisions::{self, Said};

use crate::golden::case::{Case, all};
use crate::kernel::Kernel;
use crate::world_namespace::in_world_namespace;
use crate::{SETS, can_run};

/// One line for each record.
#[derive(Default)]
struct Lines(Mutex<String>);

impl Log for &Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        writeln!(self.0.lock().unwrap(), "{}", record.args()).unwrap();
    }

    fn flush(&self) {}
}

#[test]
fn the_debug_build_says_every_decision_as_it_writes_it_down() {
    in_world_namespace(|| {
        let lines = Lines::default();
        let mut kernels = SETS.map(Kernel::talkative);
        let mut loggers = kernels.each_mut().map(|kernel| kernel.listen(&lines));
        let mut drops = 0;
        for Case { entry, missing, here, packet, name, .. } in all() {
            if !can_run(&packet) {
                continue;
            }
            let set = entry.set(missing) as usize;
            kernels[set].fill(crate::kernel::boot_time());
            let decision = kernels[set].run(entry.program(), here, &packet).decision;
            loggers[set].flush();
            let said = std::mem::take(&mut *lines.0.lock().unwrap());
            let numbers = format!("{here} {} {} {}\n", decision.verdict, decision.target, decision.reason);
            assert_eq!(said, numbers, "{name}");
            let said = Said::read(said.trim_end()).unwrap_or_else(|| panic!("{name}: {said}"));
            assert_eq!((said.ifindex, said.verdict == "drop"), (here, decision.verdict == 1), "{name}");
            drops += u32::from(said.verdict == "drop" && !said.reason.is_empty());
        }
        assert!(drops > 20, "{drops} drops");
    });
}

#[test]
fn an_agent_can_load_the_debug_build_for_bare_packets_too() {
    Kernel::load(0).ensure_loaded("from_tunnel");
}

#[test]
fn the_shipped_programs_say_nothing() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bpf/shunt.o");
    let mut ebpf = EbpfLoader::new().load_file(shipped).unwrap();
    assert!(ebpf.map(decisions::MAP).is_none());
    let lines = Lines::default();
    assert!(decisions::listen(&mut ebpf, &lines).unwrap().is_none());
}

#[test]
fn what_is_no_decision_is_not_read_as_one() {
    for text in ["", "1 2 3", "1 10 0 0", "1 0 0 4000000000", "a b c d", "4294967296 2 0 0"] {
        assert_eq!(Said::read(text), None, "{text:?}");
    }
    let said = Said::read("12 2 7 0").unwrap();
    assert_eq!((said.ifindex, said.verdict, said.target), (12, "peer", 7));
}
