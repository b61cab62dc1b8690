//! BPF filters on the clsact hooks of a link (linux/pkt_cls.h).

use nix::libc;

use super::socket::{self, NetlinkError, RequestSocket};
use super::traffic_control::{TCA_KIND, TCA_OPTIONS, request, split};

/// Options of a filter of kind `bpf`.
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
    match socket.dump(libc::RTM_GETTFILTER, &request(ifindex, parent), parse) {
        Err(NetlinkError::Refused(error)) if error.raw_os_error() == Some(libc::EINVAL) => Ok(Vec::new()),
        other => other,
    }
}

/// Reads the payload of `RTM_NEWTFILTER`. None for the entry that only speaks of a priority and has no filter.
pub(super) fn parse(payload: &[u8]) -> Option<Filter> {
    let (head, rest) = split(payload)?;
    let mut filter = Filter { priority: head.priority, handle: head.handle, ..Filter::default() };
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
