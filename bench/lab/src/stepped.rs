//! A program that is run one instruction at a time: which ones it executes.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output};

use anyhow::{Context, Result, bail};
use nix::libc::user_regs_struct;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// The program that becomes another one once it is watched: the other one is seen from its first instruction on.
const LAUNCHER: &str = r#"kill -STOP $$; exec "$0""#;

/// Launches `program` for [`step`].
pub(crate) fn waiting(program: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(LAUNCHER).arg(program);
    command
}

/// Runs what [`waiting`] launches, to its end; `visit` hears the address of each instruction before it is executed.
///
/// It executes some 20,000 of them a second, and what it prints has to fit into its pipes. The calling thread must be the one that has
/// started `child`.
///
/// # Errors
/// When the kernel refuses, or the program does not end by itself.
pub(crate) fn step(mut child: Child, mut visit: impl FnMut(u64)) -> Result<Output> {
    let process = Pid::from_raw(child.id().try_into().context("a process's number")?);
    wait(process, WaitPidFlag::WUNTRACED)?;
    ptrace::seize(process, ptrace::Options::PTRACE_O_TRACEEXEC | ptrace::Options::PTRACE_O_EXITKILL)
        .context("watch a program")?;
    kill(process, Signal::SIGCONT)?;
    loop {
        match wait(process, WaitPidFlag::empty())? {
            WaitStatus::PtraceEvent(_, _, event) if event == ptrace::Event::PTRACE_EVENT_EXEC as i32 => break,
            WaitStatus::PtraceEvent(..) | WaitStatus::Stopped(..) => ptrace::cont(process, None)?,
            other => bail!("the launcher did not become the program: {other:?}"),
        }
    }
    let code = loop {
        ptrace::step(process, None)?;
        match wait(process, WaitPidFlag::empty())? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => visit(counter(&ptrace::getregs(process)?)),
            WaitStatus::Exited(_, code) => break code,
            other => bail!("{other:?} while it was watched"),
        }
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut stdout)?;
    }
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_end(&mut stderr)?;
    }
    Ok(Output { status: ExitStatus::from_raw(code << 8), stdout, stderr })
}

#[cfg(target_arch = "x86_64")]
fn counter(registers: &user_regs_struct) -> u64 {
    registers.rip
}

#[cfg(not(target_arch = "x86_64"))]
fn counter(registers: &user_regs_struct) -> u64 {
    registers.pc
}

fn wait(process: Pid, flags: WaitPidFlag) -> Result<WaitStatus> {
    waitpid(process, Some(flags)).context("wait for a program that is watched")
}
