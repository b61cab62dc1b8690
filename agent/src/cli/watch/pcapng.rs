//! Writes packets as pcapng (draft-ietf-opsawg-pcapng): an interface each, and the verdict as each packet's comment.
//!
//! All interfaces have the link type Ethernet, for tcpdump reads no file with two: a packet without an Ethernet header gets one of zero
//! addresses.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};
use shunt_agent_api::PacketReport;

use super::stream::Losses;
use super::text::place;

/// Bytes of an Ethernet header, and of both addresses in it.
const ETHERNET: u32 = 14;
const ADDRESSES: usize = 12;

/// A file that packets are written to.
pub(in crate::cli) struct Capture<W: Write> {
    writer: PcapNgWriter<W>,
    /// By name and index: an interface may come back under either.
    interfaces: HashMap<(String, u32), u32>,
    snap: u32,
    /// Lost since the last packet.
    lost: u64,
}

impl<W: Write> Capture<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// The file's.
    pub(in crate::cli) fn begin(writer: W, snap: u32) -> io::Result<Self> {
        let writer = PcapNgWriter::new(writer).map_err(plain)?;
        Ok(Self { writer, interfaces: HashMap::new(), snap: snap + ETHERNET, lost: 0 })
    }

    /// Remembers that packets are missing before the next one.
    pub(in crate::cli) fn lose(&mut self, losses: Losses) {
        self.lost += losses.left_out + losses.lost;
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// The file's.
    pub(in crate::cli) fn write(&mut self, packet: &PacketReport, bytes: &[u8]) -> io::Result<()> {
        let interface_id = self.interface(packet)?;
        let data = if packet.bare { framed(bytes) } else { Cow::Borrowed(bytes) };
        let added = if packet.bare { ETHERNET } else { 0 };
        let mut options = vec![EnhancedPacketOption::Common(CommonOption::Comment(comment(packet).into()))];
        if self.lost > 0 {
            options.push(EnhancedPacketOption::DropCount(std::mem::take(&mut self.lost)));
        }
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(packet.time),
            original_len: (packet.length + added).max(data.len() as u32),
            data,
            options,
        };
        self.writer.write_pcapng_block(block).map(drop).map_err(plain)
    }

    /// Hands what is written to whoever reads.
    ///
    /// # Errors
    /// The file's.
    pub(in crate::cli) fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }

    fn interface(&mut self, packet: &PacketReport) -> io::Result<u32> {
        let key = (packet.ifname.clone(), packet.ifindex);
        if let Some(known) = self.interfaces.get(&key) {
            return Ok(*known);
        }
        let options = vec![
            InterfaceDescriptionOption::IfName(packet.ifname.as_str().into()),
            InterfaceDescriptionOption::IfDescription(place(packet).into()),
            InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
        ];
        let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: self.snap, options };
        self.writer.write_pcapng_block(block).map_err(plain)?;
        let id = self.interfaces.len() as u32;
        self.interfaces.insert(key, id);
        Ok(id)
    }
}

/// The packet behind an Ethernet header of its protocol.
fn framed(bytes: &[u8]) -> Cow<'_, [u8]> {
    let protocol: [u8; 2] = match bytes.first().map(|first| first >> 4) {
        Some(6) => [0x86, 0xdd],
        _ => [0x08, 0x00],
    };
    Cow::Owned([&[0; ADDRESSES][..], &protocol, bytes].concat())
}

/// What became of the packet.
fn comment(packet: &PacketReport) -> String {
    let PacketReport { program, verdict, to, reason, stage, .. } = packet;
    let to = if to.is_empty() { String::new() } else { format!(" to {to}") };
    let why = if reason.is_empty() { String::new() } else { format!(" {reason} ({stage})") };
    format!("{program} on {}: {verdict}{to}{why}", place(packet))
}

fn plain(error: PcapNgWriteError) -> io::Error {
    match error {
        PcapNgWriteError::Io(error) => error,
        error => io::Error::other(error),
    }
}
