//! A virtual machine: QEMU, emulating the processor (nested virtualisation is rarely to be had), and beside it
//! virtiofsd, which shows the host's root to the guest. Both end with this process, however it ends.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::watch::{self, Bounds};
use crate::process;

const MEMORY: &str = "1G";

/// The guest's time passes by the instructions that it runs, one a nanosecond, and only while it has nothing to do by the
/// host's clock. So it runs at a fifth of its own speed and takes itself for a fast machine, however busy the host is,
/// and no test is late. With more than one processor QEMU 7.2 does not come up.
const CLOCK: &str = "shift=0";
const PROCESSORS: &str = "1";

/// All that the emulator can do but for what costs it more than it gives. With `erms` the kernel sets memory to zero by one
/// instruction that is emulated byte by byte, the verifier five thousand of them for each two states that it compares; a
/// fifth level of page tables makes walks longer; and nobody attacks this kernel.
const PROCESSOR: &str = "max,-erms,-fsrm,-la57,-smap,-smep,-umip,-pku";

/// Nothing of the kernel's own protection and accounting either, which are paid for with each page or system call.
const KERNEL_LINE: &str = "console=ttyS0 panic=-1 quiet tsc=reliable mitigations=off init_on_alloc=0 security=none audit=0 cryptomgr.notests";

/// The first line comes after some seconds; a test that says nothing for longer hangs.
const SILENCE: Duration = Duration::from_secs(6 * 60);

/// Debian's and the upstream project's own place.
const VIRTIOFSD: [&str; 2] = ["/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd"];

pub(super) struct Machine<'a> {
    pub(super) image: &'a Path,
    pub(super) initramfs: &'a Path,
    /// Where the second serial line is written to.
    pub(super) report: &'a Path,
    /// When it is ended, whatever it does.
    pub(super) deadline: Instant,
}

/// A process that is ended when nobody holds it any more.
struct Tied(Child);

impl Drop for Tied {
    fn drop(&mut self) {
        // It may have ended by itself; then there is only its status to fetch.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Machine<'_> {
    /// Boots, hands every line of the console to `show`, and returns the report once the guest has switched itself off.
    pub(super) fn run(&self, show: impl FnMut(&str)) -> Result<String> {
        process::check_interrupted()?;
        let (listener, socket) = listen()?;
        let files = share(listener)?;
        let mut qemu = self.start(&socket)?;
        let console = qemu.0.stdout.take().context("the console is a pipe")?;
        let whole = self.deadline.saturating_duration_since(Instant::now());
        let outcome = watch::lines(&mut qemu.0, console, Bounds { silence: SILENCE, whole }, show);
        drop((qemu, files));
        process::check_interrupted()?;
        outcome?;
        fs::read_to_string(self.report).with_context(|| format!("cannot read {}", self.report.display()))
    }

    fn start(&self, socket: &str) -> Result<Tied> {
        let report = File::create(self.report);
        report.with_context(|| format!("cannot create {}", self.report.display()))?;
        let mut qemu = tied("qemu-system-x86_64".as_ref());
        qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"])
            .args(["-machine", "q35,memory-backend=memory", "-accel", "tcg,thread=single", "-cpu", PROCESSOR])
            .args(["-icount", CLOCK, "-smp", PROCESSORS, "-m", MEMORY])
            .args(["-object", &format!("memory-backend-memfd,id=memory,size={MEMORY},share=on")])
            .args(["-chardev", &format!("socket,id=files,path={socket},abstract=on,tight=on")])
            .args(["-device", "vhost-user-fs-pci,queue-size=1024,chardev=files,tag=hostroot"])
            .args(network_cards())
            .args(["-serial", "stdio", "-serial"])
            .arg(format!("file:{}", self.report.display()))
            .arg("-kernel")
            .arg(self.image)
            .arg("-initrd")
            .arg(self.initramfs)
            .args(["-append", KERNEL_LINE]);
        spawn(qemu.stdin(Stdio::null()).stdout(Stdio::piped()))
    }
}

/// Two wires, with a network card at both ends of each: hardware that tests may take programs into. Their addresses say which is
/// which, and that they are the tests'.
fn network_cards() -> Vec<String> {
    let mut words = Vec::new();
    for (wire, end) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let card = format!("card{wire}{end}");
        words.extend(["-netdev".to_owned(), format!("hubport,id={card},hubid={wire}")]);
        let address = format!("52:54:00:77:{wire:02x}:{end:02x}");
        words.extend(["-device".to_owned(), format!("virtio-net-pci,netdev={card},mac={address},romfile=")]);
    }
    words
}

/// An abstract socket, which is in no directory and goes with its last user.
fn listen() -> Result<(UnixListener, String)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("shunt-vm-{}-{number}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).context("the socket's name is too long")?;
    let listener = UnixListener::bind_addr(&address).with_context(|| format!("cannot listen at {name}"))?;
    Ok((listener, name))
}

fn share(listener: UnixListener) -> Result<Tied> {
    let Some(program) = VIRTIOFSD.iter().map(Path::new).find(|path| path.is_file()) else {
        bail!("there is no virtiofsd in any of {VIRTIOFSD:?}");
    };
    let mut virtiofsd = tied(program);
    virtiofsd.args(["--fd=0", "-o", "source=/", "-o", "sandbox=chroot", "-o", "cache=always"]);
    spawn(virtiofsd.stdin(Stdio::from(OwnedFd::from(listener))).stdout(Stdio::null()).stderr(Stdio::null()))
}

/// A command that the kernel ends when the thread that has started it is gone, as after a SIGKILL.
fn tied(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

fn spawn(command: &mut Command) -> Result<Tied> {
    let child = command.spawn().with_context(|| format!("cannot start `{}`", process::shown(command)))?;
    Ok(Tied(child))
}
