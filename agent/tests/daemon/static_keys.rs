//! The kernel's hooks, kept on by programs where no packet comes.

use aya::programs::{ProgramInfo, loaded_links};

use crate::rig::{Rig, eventually};

#[test]
fn an_agent_without_containers_keeps_the_hooks_on_both_ways_until_it_ends() {
    let mut rig = Rig::start("tcx");
    let program = ProgramInfo::from_pin(rig.pin("programs/from_container")).unwrap().id();
    // Links come and go meanwhile, those of other tests too.
    let count = || loaded_links().flatten().filter(|link| link.program_id() == program).count();
    assert_eq!(count(), 2);
    rig.kill();
    eventually("they go with the agent", || count() == 0);
}
