//! BPF filters on the clsact hooks of a link (linux/pkt_cls.h).

use nix::libc;

use super::socket::{self, NetlinkError, RequestSocket};

/// Bytes of `struct tcmsg`.
const TCMSG: usize = 20;

/// Attributes of a filter, and of its options if it is of kind `bpf`.
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_ID: u16 = 11;

/// One filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Its priority; lower runs first.
    pub priority: u16,
    /// Its handle within the priority.
    pub handle: u32,
    /// Its kind; ours are `bpf`.
    pub kind: String,
    /// The name that its program was attached under.
    pub name: String,
    /// The kernel's id of its program.
    pub program: u32,
}

/// The filters of one hook: `parent` is `TC_H_CLSACT` with the direction's minor number. Empty without the qdisc.
///
/// # Errors
/// Netlink's.
pub fn of_hook(socket: &mut RequestSocket, ifindex: u32, parent: u32) -> Result<Vec<Filter>, NetlinkError> {
    let mut request = [0; TCMSG];
    request[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    request[12..16].copy_from_slice(&parent.to_ne_bytes());
    match socket.dump(libc::RTM_GETTFILTER, &request, parse) {
        Err(NetlinkError::Refused(error)) if error.raw_os_error() == Some(libc::EINVAL) => Ok(Vec::new()),
        other => other,
    }
}

/// Reads the payload of `RTM_NEWTFILTER`. None for the entry that only speaks of a priority and has no filter.
fn parse(payload: &[u8]) -> Option<Filter> {
    let (header, rest) = payload.split_first_chunk::<TCMSG>()?;
    let handle = socket::number(&header[8..12])?;
    let priority = (socket::number(&header[16..20])? >> 16) as u16;
    let mut filter = Filter { priority, handle, ..Filter::default() };
    socket::attributes(rest, |kind, value| match kind {
        TCA_KIND => filter.kind = text(value),
        TCA_OPTIONS => socket::attributes(value, |kind, value| match kind {
            TCA_BPF_NAME => filter.name = text(value),
            TCA_BPF_ID => filter.program = socket::number(value).unwrap_or_default(),
            _ => {}
        }),
        _ => {}
    });
    (filter.handle != 0).then_some(filter)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}
