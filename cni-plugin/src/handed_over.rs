//! What an earlier uninstallation has handed to other plugins: their rules outlive the container unless they are asked to remove them.
//!
//! `bridge` removes the rules of the addresses that it finds in the container. It is shown a namespace with these alone, so the
//! container may be gone, and its interface stays ours to delete.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;
use shunt_agent_api::{AttachmentKey, HandedOver};
use shunt_netlink::address::add_address;
use shunt_netlink::link::{Link, Selector, add_bridge, link};
use shunt_netlink::namespace::apart;
use shunt_netlink::{Connection, NetlinkError};
use shunt_regular_file::read_own;

use crate::call::{Call, Failure, Verb};
use crate::error::{Error, KeptError};
use crate::program;

/// Where a kept plugin is, if its name is shunt's.
const KEPT: &str = "orig";

/// The plugin, to which its names are links.
const PLUGIN: &str = "shunt";

/// How long a plugin may take: iptables waits for its lock.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was handed over of an attachment.
pub(crate) fn of(socket: &Path, key: &AttachmentKey) -> Option<HandedOver> {
    read(&HandedOver::path(socket, key)).filter(|handed| handed.key == *key)
}

/// Has the plugins remove what they have made for an attachment. Where one of them is gone, nothing can be done, and the file stays.
///
/// # Errors
/// [`KeptError`]; the file stays.
pub(crate) fn take_down(socket: &Path, handed: &HandedOver, call: &Call) -> Result<(), Error> {
    take(&HandedOver::path(socket, &handed.key), handed, call)
}

/// The same of all attachments of a network but these.
///
/// # Errors
/// As [`take_down`]; all that could be removed is.
pub(crate) fn collect(
    socket: &Path,
    network: &str,
    valid: &[AttachmentKey],
    call: &Call,
) -> Result<(), Error> {
    let entries = fs::read_dir(HandedOver::directory(socket)).into_iter().flatten().flatten();
    let mut failures = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        let stale = read(&path).filter(|one| one.key.network == network && !valid.contains(&one.key));
        failures.extend(stale.and_then(|stale| take(&path, &stale, call).err()));
    }
    if failures.is_empty() { Ok(()) } else { Err(Error::Several(failures)) }
}

fn read(path: &Path) -> Option<HandedOver> {
    serde_json::from_slice(&read_own(path, HandedOver::LONGEST).ok()?).ok()
}

fn take(path: &Path, handed: &HandedOver, call: &Call) -> Result<(), Error> {
    let asked = [("portmap", &handed.host_ports), ("bridge", &handed.masquerading)];
    let mut is_whole = true;
    for (name, config) in asked.into_iter().filter_map(|(name, config)| Some((name, config.as_ref()?))) {
        let Some(program) = find(name, call) else {
            is_whole = false;
            continue;
        };
        let shown = match name {
            "bridge" => Some(Shown::with(handed).map_err(|error| failed(&program, error))?),
            _ => None,
        };
        let netns = shown.as_ref().map(Shown::path).unwrap_or_default();
        ask(&program, &handed.key, &netns, config, call)?;
    }
    if is_whole {
        // Whatever is left of it says nothing any more.
        let _gone = fs::remove_file(path);
        let _others = path.parent().map(fs::remove_dir);
    }
    Ok(())
}

/// A plugin that is not shunt's.
fn find(name: &str, call: &Call) -> Option<PathBuf> {
    let is_ours = |path: &Path| {
        fs::read_link(path).is_ok_and(|target| target.file_name().is_some_and(|name| name == PLUGIN))
    };
    let in_folder = |folder: &PathBuf| {
        let own = folder.join(name);
        if is_ours(&own) { own.with_extension(KEPT) } else { own }
    };
    call.path.iter().map(in_folder).find(|path| program::is_program(path))
}

fn ask(program: &Path, key: &AttachmentKey, netns: &Path, config: &Value, call: &Call) -> Result<(), Error> {
    let mut command = call.command(program, Verb::Del);
    command.env("CNI_CONTAINERID", &key.container).env("CNI_IFNAME", &key.ifname).env("CNI_NETNS", netns);
    let command = program::by_its_name(&mut command, program);
    let ended = program::run(command, config.to_string().as_bytes(), Some(Instant::now() + PATIENCE))
        .map_err(|source| failed(program, source))?;
    if ended.status.success() {
        return Ok(());
    }
    let program = program.to_path_buf();
    Err(match serde_json::from_slice::<Failure>(&ended.output) {
        Ok(failure) => KeptError::Failed { program, failure },
        Err(_) => KeptError::Unreadable { program, status: ended.status },
    }
    .into())
}

fn failed(program: &Path, source: io::Error) -> KeptError {
    KeptError::Run { program: program.to_path_buf(), source }
}

/// A namespace with an interface of the container's name and addresses.
struct Shown(File);

impl Shown {
    fn with(handed: &HandedOver) -> io::Result<Self> {
        let addresses: Vec<IpNet> =
            handed.addresses().into_iter().filter_map(|text| text.parse().ok()).collect();
        let made = apart("shown", || -> io::Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            show(&handed.key.ifname, &addresses).map_err(io::Error::other)?;
            File::open("/proc/thread-self/ns/net")
        });
        made?.map(Self)
    }

    /// A path to it that every process can open.
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }
}

fn show(ifname: &str, addresses: &[IpNet]) -> Result<(), NetlinkError> {
    let mut connection = Connection::open()?;
    connection.run(add_bridge(&Link::named(ifname)))?;
    if let Some(made) = connection.get(link(Selector::Name(ifname)))? {
        connection.run_all(addresses.iter().map(|address| add_address(made.index, *address)).collect())?;
    }
    Ok(())
}
