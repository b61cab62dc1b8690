//! The watched build does what the plain one does, and tells what the pure code decides.

use shunt_dataplane::abi::watch::{VERDICT_BACK, VERDICT_DROP};
use shunt_lab::is_emulated;

use crate::golden::case::{Case, Entry, all};
use crate::golden::shares;
use crate::kernel::Kernel;
use crate::world_namespace::in_world_namespace;
use crate::{SETS, assert_left, assert_remembered, can_run, tables_for};

/// Tunnels have programs of their own for test runs, which only the debug build has.
fn has_frames(entry: Entry) -> bool {
    !matches!(entry, Entry::FromTunnel | Entry::ToTunnel)
}

fn assert_told(kernel: &mut Kernel, case: &Case, is_capturing: bool) {
    let Case { entry, missing, here, packet, name, .. } = case;
    kernel.ensure_loaded(entry.program());
    let tables = tables_for(packet);
    let mut pure = packet.clone();
    let verdict = entry.travel(&mut pure, *here, *missing, &tables);
    kernel.fill(tables.boot_time);
    let shares = shares::for_packet(packet, tables.boot_time);
    kernel.share_out(&shares);
    let (left, told) = kernel.watch(entry.program(), *here, packet);
    assert_left(left, (&verdict, &pure), name);
    assert_remembered(kernel, (tables, &shares), name);
    let said: Vec<_> = told.iter().map(|packet| (packet.verdict, packet.target, packet.reason)).collect();
    let is_told = is_capturing || [VERDICT_BACK, VERDICT_DROP].contains(&verdict.code().0);
    assert_eq!(said, Vec::from_iter(is_told.then(|| verdict.code())), "{name}: told of {verdict:?}");
}

#[test]
fn what_the_watched_programs_do_and_tell_is_what_the_pure_code_decides() {
    in_world_namespace(|| {
        let is_run = |case: &Case| can_run(&case.packet) && has_frames(case.entry);
        let cases: Vec<Case> = all().into_iter().filter(is_run).collect();
        assert!(cases.len() >= 60, "only {} golden packets can be run", cases.len());
        // An emulated processor takes minutes for the verifier's work alone.
        let (modes, one_of) = if is_emulated() { (&[true][..], 10) } else { (&[false, true][..], 1) };
        for &is_capturing in modes {
            let mut kernels = SETS.map(|set| Kernel::watched(set, is_capturing));
            for case in cases.iter().step_by(one_of) {
                let kernel = &mut kernels[case.entry.set(case.missing) as usize];
                assert_told(kernel, case, is_capturing);
            }
        }
    });
}
