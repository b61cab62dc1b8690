//! What would become of a packet: the question, and the answer stage by stage.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::AttachmentKey;

/// The longest frame that may be asked about, in bytes.
pub const MAX_FRAME: usize = 9_014;

/// Where a packet begins, as `NETWORK/CONTAINER/IFNAME`, `uplink:NAME` or `host`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A container sends it.
    Container(AttachmentKey),
    /// It comes in by an interface of the node.
    Uplink(String),
    /// The node sends it to a container.
    Host,
}

/// A packet: its bytes in hex from the Ethernet header on, or where it goes, as `tcp 10.0.0.2:80`, `tcp 10.0.0.2:80 from 41000`,
/// `icmp 10.0.0.2` or `arp 10.0.0.2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// This very frame.
    Frame(Vec<u8>),
    /// The first packet of a conversation with this end.
    Begins(Kind, IpAddr, u16),
    /// A packet in the middle of one, from this port.
    Continues(Kind, IpAddr, u16, u16),
}

/// What a conversation begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A SYN.
    Tcp,
    /// A datagram.
    Udp,
    /// An echo request, of the address's family.
    Icmp,
    /// A request for the address's hardware address.
    Arp,
}

/// Why a question makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// Not an [`Origin`].
    #[error("begins at NETWORK/CONTAINER/IFNAME, uplink:NAME or host")]
    Origin,
    /// Not a [`Question`].
    #[error(
        "is bytes in hex, or a packet like `tcp 10.0.0.2:80`, `tcp 10.0.0.2:80 from 41000`, `udp [fd00::2]:53`, `icmp 10.0.0.2`, `arp 10.0.0.2`"
    )]
    Packet,
    /// No frame is so short or so long.
    #[error("has {0} bytes; a frame has 14 to {MAX_FRAME}")]
    Length(usize),
}

impl FromStr for Origin {
    type Err = QuestionError;

    fn from_str(text: &str) -> Result<Self, QuestionError> {
        if text == "host" {
            return Ok(Self::Host);
        }
        if let Some(name) = text.strip_prefix("uplink:").filter(|name| !name.is_empty()) {
            return Ok(Self::Uplink(name.to_owned()));
        }
        match text.split('/').collect::<Vec<_>>()[..] {
            [network, container, ifname] if ![network, container, ifname].contains(&"") => {
                let [network, container, ifname] = [network, container, ifname].map(str::to_owned);
                Ok(Self::Container(AttachmentKey { network, container, ifname }))
            }
            _ => Err(QuestionError::Origin),
        }
    }
}

impl FromStr for Question {
    type Err = QuestionError;

    fn from_str(text: &str) -> Result<Self, QuestionError> {
        let Some((word, end)) = text.trim().split_once(' ').filter(|(word, _)| kind(word).is_some()) else {
            return frame(text);
        };
        let (kind, end) = (kind(word).ok_or(QuestionError::Packet)?, end.trim());
        let address = |text: &str| text.parse::<IpAddr>().map_err(|_| QuestionError::Packet);
        match kind {
            Kind::Tcp | Kind::Udp => {
                let (to, from) = end.split_once(" from ").map_or((end, None), |(to, from)| (to, Some(from)));
                let to: SocketAddr = to.trim().parse().map_err(|_| QuestionError::Packet)?;
                let from =
                    from.map(|port| port.trim().parse().map_err(|_| QuestionError::Packet)).transpose()?;
                Ok(match from {
                    Some(from) => Self::Continues(kind, to.ip(), to.port(), from),
                    None => Self::Begins(kind, to.ip(), to.port()),
                })
            }
            Kind::Icmp => Ok(Self::Begins(kind, address(end)?, 0)),
            Kind::Arp => match address(end)? {
                ip @ IpAddr::V4(_) => Ok(Self::Begins(kind, ip, 0)),
                IpAddr::V6(_) => Err(QuestionError::Packet),
            },
        }
    }
}

fn kind(word: &str) -> Option<Kind> {
    match word {
        "tcp" => Some(Kind::Tcp),
        "udp" => Some(Kind::Udp),
        "icmp" => Some(Kind::Icmp),
        "arp" => Some(Kind::Arp),
        _ => None,
    }
}

/// Hex digits, with anything that people put between bytes.
fn frame(text: &str) -> Result<Question, QuestionError> {
    let digits: Vec<u8> =
        text.bytes().filter(|byte| !byte.is_ascii_whitespace() && !b":-".contains(byte)).collect();
    if digits.is_empty() || !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(QuestionError::Packet);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
    if !(14..=MAX_FRAME).contains(&bytes.len()) {
        return Err(QuestionError::Length(bytes.len()));
    }
    Ok(Question::Frame(bytes))
}

/// What would become of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// `deliver`, `flood`, `pass` (the kernel does what it would do without us) or `drop`.
    pub verdict: String,
    /// Why it is passed or dropped, as `drops` names it; empty otherwise.
    pub reason: String,
    /// To which interfaces it is delivered or flooded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// What each stage says, in the order in which they are met.
    pub stages: Vec<StageReport>,
    /// The frame as it leaves, in hex, with its tag.
    pub packet: String,
}

/// What one stage says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageReport {
    /// Its name.
    pub stage: String,
    /// `on`, or the verdict.
    pub decision: String,
    /// What it looked at, and what it found there.
    pub detail: String,
    /// In which program.
    pub program: String,
    /// On which interface.
    pub ifname: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_container_an_uplink_or_the_host() {
        assert_eq!("host".parse(), Ok(Origin::Host));
        assert_eq!("uplink:eth0".parse(), Ok(Origin::Uplink("eth0".into())));
        let key = AttachmentKey { network: "n".into(), container: "c".into(), ifname: "eth0".into() };
        assert_eq!("n/c/eth0".parse(), Ok(Origin::Container(key)));
        for text in ["", "uplink:", "n/c", "n//eth0", "n/c/eth0/x"] {
            assert_eq!(text.parse::<Origin>(), Err(QuestionError::Origin), "{text}");
        }
    }

    #[test]
    fn a_packet_is_hex_or_a_sketch() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let cases = [
            ("tcp 10.0.0.2:80", Question::Begins(Kind::Tcp, ip("10.0.0.2"), 80)),
            ("udp  [fd00::2]:53", Question::Begins(Kind::Udp, ip("fd00::2"), 53)),
            ("tcp 10.0.0.2:80 from 41000", Question::Continues(Kind::Tcp, ip("10.0.0.2"), 80, 41_000)),
            ("icmp fd00::2", Question::Begins(Kind::Icmp, ip("fd00::2"), 0)),
            ("arp 10.0.0.2", Question::Begins(Kind::Arp, ip("10.0.0.2"), 0)),
            (
                "02:00:00:00:00:01 020000000002 88-b5",
                Question::Frame(vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5]),
            ),
        ];
        for (text, question) in cases {
            assert_eq!(text.parse(), Ok(question), "{text}");
        }
        for text in [
            "",
            "tcp 10.0.0.2",
            "arp fd00::2",
            "sctp 10.0.0.2:80",
            "0g",
            "012",
            "tcp",
            "tcp 10.0.0.2:80 from",
            "tcp 10.0.0.2:80 from 70000",
            "icmp 10.0.0.2 from 1",
        ] {
            assert_eq!(text.parse::<Question>(), Err(QuestionError::Packet), "{text}");
        }
        assert_eq!("0102".parse::<Question>(), Err(QuestionError::Length(2)));
    }
}
