//! What is sent of a flow in each phase.

use super::{Flow, Frame, Kind, NODE, Phase, Sent};
use crate::packets::{ACK, FIN, ICMP, ICMPV6, PSH, RST, SYN, UDP, arp, sctp_init};

impl Flow {
    /// The packets of a phase, in their order.
    pub(crate) fn phase(&mut self, phase: Phase) -> Vec<Sent> {
        match phase {
            Phase::First => self.first(),
            Phase::On(times) => (0..times).flat_map(|_| self.on()).collect(),
            Phase::End => self.end(),
        }
    }

    fn first(&mut self) -> Vec<Sent> {
        match self.kind {
            Kind::Tcp | Kind::TcpReset => {
                let mut all = vec![self.segment(0, SYN, 0), self.segment(1, SYN | ACK, 0)];
                all.push(self.segment(0, ACK, 0));
                all.extend(self.on());
                all
            }
            Kind::TcpSimultaneous => {
                let mut all = vec![self.segment(0, SYN, 0), self.segment(1, SYN, 0)];
                for direction in [0, 1] {
                    self.next[direction] -= 1;
                    all.push(self.segment(direction, SYN | ACK, 0));
                }
                all.extend(self.on());
                all
            }
            Kind::TcpRefused => vec![self.segment(0, SYN, 0), self.segment(1, RST | ACK, 0)],
            Kind::Sctp => {
                let [client, server] = self.tags();
                let cookie = b"cook";
                vec![
                    self.chunk(0, 0, 1, &sctp_init(client, false)),
                    self.chunk(1, client, 2, &sctp_init(server, true)),
                    self.chunk(0, server, 10, cookie),
                    self.chunk(1, client, 11, &[]),
                ]
            }
            _ => [self.on(), self.on()].concat(),
        }
    }

    /// A packet of each direction, with the acknowledgement of the second.
    fn on(&mut self) -> Vec<Sent> {
        match self.kind {
            Kind::Tcp | Kind::TcpReset | Kind::TcpSimultaneous => {
                vec![self.segment(0, PSH | ACK, 20), self.segment(1, PSH | ACK, 20), self.segment(0, ACK, 0)]
            }
            Kind::TcpRefused => Vec::new(),
            Kind::Udp if self.ends[1] == NODE => vec![self.datagram(0)],
            Kind::Udp | Kind::FromNode => vec![self.datagram(0), self.datagram(1)],
            Kind::UdpOneWay | Kind::Group | Kind::Broadcast => vec![self.datagram(0)],
            Kind::UdpUnreachable => {
                let question = self.datagram(0);
                let back = self.back();
                let protocol = if back.is_v6() { ICMPV6 } else { ICMP };
                let error = self.sent(1, protocol, &back.unreachable(&question.packet), "error", false);
                vec![question, error]
            }
            Kind::Fragments => [self.fragments(), vec![self.datagram(1)]].concat(),
            Kind::Arp => self.arp(),
            Kind::Echo => self.echo(),
            Kind::Sctp => {
                self.sent += 1;
                let tags = self.tags();
                let number = u32::from(self.sent).to_be_bytes();
                let data = [&number[..], &[0; 8], b"datadata"].concat();
                vec![self.chunk(0, tags[1], 0, &data), self.chunk(1, tags[0], 0, &data)]
            }
        }
    }

    fn end(&mut self) -> Vec<Sent> {
        match self.kind {
            Kind::Tcp => {
                let mut all = vec![self.segment(0, FIN | ACK, 0), self.segment(1, ACK, 0)];
                for _ in 0..3 {
                    all.extend([self.segment(1, PSH | ACK, 20), self.segment(0, ACK, 0)]);
                }
                all.extend([self.segment(1, FIN | ACK, 0), self.segment(0, ACK, 0)]);
                all
            }
            Kind::TcpReset => {
                let reset = self.segment(0, RST | ACK, 0);
                // What the reset crosses on its way, and what comes after it all the same.
                [vec![reset], self.on()].concat()
            }
            Kind::TcpSimultaneous => vec![self.segment(1, RST | ACK, 0)],
            _ => self.on(),
        }
    }

    /// A datagram of two fragments.
    pub(super) fn fragments(&mut self) -> Vec<Sent> {
        self.sent += 1;
        let body = self.between.udp(self.ports, &self.payload(1200));
        let id = self.ports[0].rotate_left(7) ^ self.sent;
        let [from, to] = self.ends;
        let sent = |(packet, at): (Vec<u8>, u8)| Sent {
            frame: Frame::Plain,
            from,
            to,
            packet,
            name: format!("{} fragment {}.{at}", self.name, self.sent),
            is_data: false,
            is_faulty: false,
        };
        self.between.fragments(UDP, id, &body).into_iter().zip(1..).map(sent).collect()
    }

    fn echo(&mut self) -> Vec<Sent> {
        self.sent += 1;
        let (id, number) = (self.ports[0], self.sent);
        let payload = self.payload(20);
        let ask = self.between.echo(false, id, number, &payload);
        let protocol = if self.between.is_v6() { ICMPV6 } else { ICMP };
        let mut all = vec![self.sent(0, protocol, &ask, "request", false)];
        if self.ends[1] != NODE {
            let answer = self.back().echo(true, id, number, &payload);
            all.push(self.sent(1, protocol, &answer, "reply", false));
        }
        all
    }

    fn arp(&mut self) -> Vec<Sent> {
        if self.between.is_v6() {
            return Vec::new();
        }
        let mut sent = [self.datagram(0), self.datagram(1)];
        (sent[0].packet, sent[1].packet) = (arp(1, self.between), arp(2, self.back()));
        sent[0].frame = Frame::ToAll;
        sent.map(|sent| Sent { is_data: false, ..sent }).to_vec()
    }
}
