//! What a panic ends: the process, which is started anew and takes over what there is. A thread without which the agent would go on half alive
//! is worse than none. Only a call of the plugin's procedure ends alone, and the export of spans: their threads have nothing that others use.

use std::panic;
use std::process::abort;
use std::thread;

/// From now on a panic ends the process, unless it is one of a call of CNI.
pub fn end_the_process() {
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        say(info);
        match thread::current().name() {
            Some(shunt_cni::THREAD) => {
                tracing::error!(%info, "a call of CNI has panicked: it is a fault of shunt's, please report it");
            }
            Some(name) if shunt_trace::THREADS.contains(&name) => {
                tracing::error!(%info, "the export of spans has ended: traces are in the log alone");
            }
            _ => abort(),
        }
    }));
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    /// Names the thread that panics in [`a_process_that_panics`].
    const NAME: &str = "SHUNT_TEST_PANIC";

    #[test]
    #[ignore = "is run by another test"]
    #[allow(clippy::print_stdout, reason = "the test that runs it listens")]
    fn a_process_that_panics() {
        let Some(name) = std::env::var(NAME).ok() else { return };
        end_the_process();
        let thread = thread::Builder::new().name(name).spawn(|| panic!("a fault"));
        let ended = thread.unwrap().join();
        assert!(ended.is_err());
        println!("went on");
    }

    #[test]
    fn a_panic_ends_the_process_but_for_one_in_a_call_of_cni() {
        let run = |name: &str| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "panics::tests::a_process_that_panics", "--ignored", "--nocapture"]);
            let ended = command.env(NAME, name).output().unwrap();
            (ended.status.signal(), String::from_utf8_lossy(&ended.stdout).contains("went on"))
        };
        assert_eq!(run(shunt_cni::THREAD), (None, true));
        assert_eq!(run(shunt_trace::THREADS[1]), (None, true));
        assert_eq!(run("agent"), (Some(nix::libc::SIGABRT), false));
    }
}
