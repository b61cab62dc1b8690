//! BPF filters on the clsact hooks of a link (linux/pkt_cls.h).

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::TcFilterBpfOption;
use nix::errno::Errno;

use super::{TrafficControl, about};
use crate::attribute::typed;
use crate::connection::Connection;
use crate::error::NetlinkError;
use crate::request::{Reply, Request};

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

/// None for the entry that only speaks of a priority and has no filter.
impl Reply for Filter {
    fn read(payload: &[u8]) -> Option<Self> {
        let TrafficControl { handle, priority, kind, options, .. } = TrafficControl::read(payload)?;
        let mut filter = Self { priority, handle, kind, ..Self::default() };
        for option in typed(&options) {
            match option {
                TcFilterBpfOption::ProgName(name) => filter.name = name,
                TcFilterBpfOption::ProgId(program) => filter.program = program,
                _ => {}
            }
        }
        (handle != 0).then_some(filter)
    }
}

/// The filters of one hook: `parent` is [`super::CLSACT_INGRESS`] or [`super::CLSACT_EGRESS`]. Empty without the qdisc.
pub fn filters(connection: &mut Connection, index: u32, parent: u32) -> Result<Vec<Filter>, NetlinkError> {
    let message = RouteNetlinkMessage::GetTrafficFilter(about(index, 0, parent));
    match connection.list(Request::dump("list the filters", message)) {
        Err(error) if error.errno() == Some(Errno::EINVAL) => Ok(Vec::new()),
        other => other,
    }
}
