//! The files of held addresses, by the path of their network's directory.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Read},
    net::IpAddr,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use nix::fcntl::OFlag;

use crate::{error::Error, record::Record};

/// No record is longer: a container's id and an interface's name.
const LONGEST: u64 = 64 << 10;

/// How an attachment stands to an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It holds the address.
    Held,
    /// It is free.
    Free,
    /// Another attachment holds it: `container/ifname`, or why that cannot be told.
    Taken(String),
}

/// Whether an address is leased, and whether its record is one of `theirs`.
pub(crate) fn standing(directory: &Path, address: IpAddr, theirs: impl Fn(Record<'_>) -> bool) -> Standing {
    match content_in(directory, address) {
        Some(content) if theirs(Record::parse(&content)) => Standing::Held,
        Some(content) => Standing::Taken(Record::parse(&content).describe()),
        None if fs::symlink_metadata(directory.join(address.to_string())).is_ok() => {
            Standing::Taken("a file that cannot be read".to_owned())
        }
        None => Standing::Free,
    }
}

/// What an address's file says; none when it is gone or cannot be read.
pub(crate) fn content_in(directory: &Path, address: IpAddr) -> Option<Vec<u8>> {
    // A pipe would keep whoever opens it.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let path = directory.join(address.to_string());
    let mut file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path).ok()?;
    // Longer than any usual record: one read and no fstat, as this is done for every address of the network.
    let mut content = vec![0; 512];
    let length = file.read(&mut content).ok()?;
    if length == content.len() {
        file.take(LONGEST).read_to_end(&mut content).ok()?;
    } else {
        content.truncate(length);
    }
    Some(content)
}

/// Every address held in a network's directory, without the lock: good for counting; none when there is no directory.
pub fn addresses_in(directory: &Path) -> Result<Vec<IpAddr>, Error> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::at(directory))?,
    };
    let mut addresses = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::at(directory))?;
        addresses.extend(entry.file_name().to_str().and_then(|name| name.parse::<IpAddr>().ok()));
    }
    Ok(addresses)
}
