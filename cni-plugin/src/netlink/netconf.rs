//! Whether the node forwards, asked of the kernel directly.
//!
//! `/proc/sys/net` says the same, but each network namespace that somebody looked into has its own entries there under the
//! same names, and all of them lie in one chain of the kernel's cache: among 1,000 containers a look takes a millisecond.

use netlink_packet_core::NlasIterator;
use netlink_packet_route::AddressFamily;

use super::connection::Answer;
use super::request::{Message, Request};

const RTM_NEWNETCONF: u16 = 80;
const RTM_GETNETCONF: u16 = 82;
const NETCONFA_IFINDEX: u16 = 1;
const NETCONFA_FORWARDING: u16 = 2;
/// Stands for what holds for every interface (`NETCONFA_IFINDEX_ALL`).
const ALL: i32 = -1;
/// Bytes of `struct netconfmsg` with its padding.
const HEADER: usize = 4;

/// Asks for the settings that hold for every interface, of one family.
pub(crate) fn get_settings(family: AddressFamily) -> Request {
    let mut payload = vec![u8::from(family), 0, 0, 0];
    payload.extend(8u16.to_ne_bytes());
    payload.extend(NETCONFA_IFINDEX.to_ne_bytes());
    payload.extend(ALL.to_ne_bytes());
    Request::new(
        format!("read the settings of {family:?}"),
        Message::Other { kind: RTM_GETNETCONF, payload },
        0,
    )
}

/// Whether the node forwards, by the answer to [`get_settings`]; none where it does not say.
pub(crate) fn forwards(answers: &[Answer]) -> Option<bool> {
    let answer = answers.iter().find(|answer| answer.kind == RTM_NEWNETCONF)?;
    let mut settings = NlasIterator::new(answer.payload.get(HEADER..)?).filter_map(Result::ok);
    let forwarding = settings.find(|setting| setting.kind() == NETCONFA_FORWARDING)?;
    Some(forwarding.value().iter().any(|byte| *byte != 0))
}

#[cfg(test)]
mod tests {
    use super::super::Connection;
    use super::*;

    #[test]
    fn the_kernel_says_what_proc_says() {
        let file = std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
        let answers = Connection::open().unwrap().ask(get_settings(AddressFamily::Inet)).unwrap();
        assert_eq!(forwards(&answers), Some(file.trim() != "0"));
    }

    #[test]
    fn an_answer_without_the_setting_says_nothing() {
        let answer = |payload: &[u8]| vec![Answer { kind: RTM_NEWNETCONF, payload: payload.to_vec() }];
        assert_eq!(forwards(&[]), None);
        assert_eq!(forwards(&answer(&[2])), None);
        assert_eq!(forwards(&answer(&[2, 0, 0, 0])), None);
    }
}
