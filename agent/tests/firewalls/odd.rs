//! Packets that differ from the others of their flow.

use super::{Flow, Frame, Kind, NAMES, NODE, Sent};
use crate::packets::{ACK, PSH, SYN, UDP, URG, marked};

impl Flow {
    /// The same packets by somebody else: sent by `who` under the address of who opened it.
    pub(crate) fn forged(&mut self, who: usize) -> Vec<Sent> {
        if self.kind != Kind::Udp || self.ends.contains(&NODE) || self.ends.contains(&who) {
            return Vec::new();
        }
        let mut forged = [self.datagram(0), self.datagram(1)];
        for sent in &mut forged {
            (sent.from, sent.name) = (who, format!("{} by {}", sent.name, NAMES[who]));
        }
        forged.to_vec()
    }

    /// Packets that differ from all others of the flow in their headers, lengths and frames.
    pub(crate) fn odd(&mut self) -> Vec<Sent> {
        let sent = match self.kind {
            Kind::Udp if !self.ends.contains(&NODE) => {
                let mut all: Vec<Sent> = (0..4).map(|_| self.datagram(0)).collect();
                all[0].packet = marked(all[0].packet.clone(), 0xb8, 3);
                self.sent += 1;
                let long = self.between.udp(self.ports, &self.payload(500));
                all[1] = self.sent(0, UDP, &long, "long", false);
                let short = self.between.udp(self.ports, &[]);
                all[2] = self.sent(0, UDP, &short, "empty", false);
                all[3].packet = marked(all[3].packet.clone(), 3, 64);
                let frames =
                    [Frame::ByGateway, Frame::ToAll, Frame::ToNobody, Frame::FromOther, Frame::FromOther];
                all.extend(frames.map(|frame| Sent { frame, ..self.datagram(0) }));
                all.extend([
                    Sent { frame: Frame::Tagged, ..self.datagram(0) },
                    with_wrong_checksum(self.datagram(0)),
                ]);
                let mut with_options = self.datagram(0);
                with_options.packet =
                    self.between.with_options(UDP, &self.between.udp(self.ports, &self.payload(9)));
                all.push(with_options);
                all.extend(self.fragments());
                all
            }
            Kind::Tcp => {
                let mut all = self.faulty_segments();
                all.extend([
                    self.segment(0, URG | PSH | ACK, 300),
                    self.segment(1, 0xc0 | ACK, 5),
                    self.segment(0, ACK, 20),
                ]);
                // A SYN in the middle, which takes no number.
                all.push(self.segment(0, SYN, 0));
                self.next[0] -= 1;
                all
            }
            _ => Vec::new(),
        };
        let named =
            |sent: Sent| Sent { name: format!("{} odd {:?}", sent.name, sent.frame), is_data: false, ..sent };
        sent.into_iter().map(named).collect()
    }

    /// Segments without what each has, with a wrong checksum, and from outside of the window.
    fn faulty_segments(&mut self) -> Vec<Sent> {
        let mut all = vec![
            self.segment(0, 0, 3),
            self.segment(0, PSH, 3),
            with_wrong_checksum(self.segment(0, ACK, 7)),
        ];
        let next = self.next[0];
        self.next[0] = next.wrapping_add(1 << 20);
        all.push(self.segment(0, ACK, 9));
        self.next[0] = next;
        all.iter_mut().for_each(|sent| sent.is_faulty = true);
        all
    }
}

fn with_wrong_checksum(mut sent: Sent) -> Sent {
    if let Some(last) = sent.packet.last_mut() {
        *last ^= 1;
    }
    Sent { is_faulty: true, ..sent }
}
