//! Nothing is left behind: looked up, not claimed.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use shunt_lab::{Machine, run};

use crate::screen::Screen;

/// The kernel frees namespaces and programs after their last user, not with him.
const PATIENCE: Duration = Duration::from_secs(3);

/// Compares the machine with what it was, and asks for the programs by their ids.
pub(super) fn verify(screen: &mut Screen, before: &Machine, root: &Path, programs: &[u32]) -> Result<()> {
    let begun = Instant::now();
    loop {
        let mut left = before.leaks(root);
        left.extend(programs.iter().filter(|id| is_loaded(**id)).map(|id| format!("BPF program {id}")));
        if left.is_empty() {
            screen.line("")?;
            let what = "no namespace, link, mount, process, file or BPF program";
            return screen.done(&format!("nothing left behind: {what} (looked up, not claimed)"));
        }
        if begun.elapsed() > PATIENCE {
            bail!("left behind: {}", left.join(", "));
        }
        sleep(Duration::from_millis(20));
    }
}

fn is_loaded(id: u32) -> bool {
    run("bpftool", &["prog", "show", "id", &id.to_string()]).is_ok()
}
