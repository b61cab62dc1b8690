//! Payloads, as bytes behind an Ethernet header: proper ones, odd ones and broken ones.

/// An Ethernet type and what is behind it.
pub(crate) type Payload = (&'static str, [u8; 2], Vec<u8>);

const IPV4: [u8; 2] = [0x08, 0x00];
pub(crate) const IPV6: [u8; 2] = [0x86, 0xdd];
pub(crate) const ARP: [u8; 2] = [0x08, 0x06];

/// The two ends of what is sent; IPv4 and IPv6.
#[derive(Clone, Copy)]
pub(crate) struct Hosts {
    pub(crate) from: ([u8; 4], [u8; 16]),
    pub(crate) to: ([u8; 4], [u8; 16]),
    pub(crate) mac: [u8; 6],
}

/// An IPv4 packet with right lengths and header checksum.
fn ipv4(hosts: &Hosts, protocol: u8, fragment: u16, body: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + body.len() as u16).to_be_bytes();
    let [f1, f2] = fragment.to_be_bytes();
    let mut packet = vec![0x45, 0, high, low, 0x12, 0x34, f1, f2, 64, protocol, 0, 0];
    packet.extend([hosts.from.0, hosts.to.0].concat());
    summed(packet, body)
}

/// With the header's checksum, and what is behind it.
fn summed(mut packet: Vec<u8>, body: &[u8]) -> Vec<u8> {
    let mut sum: u32 = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    sum = (sum & 0xffff) + (sum >> 16);
    let [high, low] = (!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes();
    (packet[10], packet[11]) = (high, low);
    packet.extend(body);
    packet
}

fn ipv6(hosts: &Hosts, next: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = (body.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, high, low, next, 255][..], &hosts.from.1, &hosts.to.1, body].concat()
}

fn arp(hosts: &Hosts, operation: u8, sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    [&[0, 1, 8, 0, 6, 4, 0, operation][..], &hosts.mac, &sender, &[0; 6], &target, &[0; 18]].concat()
}

/// Neighbour discovery (RFC 4861): a message about `target` with the sender's hardware address.
fn neighbor(hosts: &Hosts, kind: u8, target: [u8; 16]) -> Vec<u8> {
    let option = if kind == 135 { 1 } else { 2 };
    ipv6(hosts, 58, &[&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target, &[option, 1], &hosts.mac].concat())
}

/// Who has the IPv4 address of `to`? Without anything behind it.
pub(crate) fn request(hosts: &Hosts) -> Vec<u8> {
    arp(hosts, 1, hosts.from.0, hosts.to.0)[..28].to_vec()
}

/// Who has the IPv6 address of `to`? Asked of its group, with the right checksum.
pub(crate) fn solicitation(hosts: &Hosts, group: [u8; 16]) -> Vec<u8> {
    let to_group = Hosts { to: (hosts.to.0, group), ..*hosts };
    let mut packet = neighbor(&to_group, 135, hosts.to.1);
    // The pseudo header: the addresses, the length and the next header.
    let words = packet[8..].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = words.sum::<u32>() + (packet.len() as u32 - 40) + 58;
    let sum = (sum & 0xffff) + (sum >> 16);
    let [high, low] = (!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes();
    (packet[42], packet[43]) = (high, low);
    packet
}

/// Every kind of payload.
pub(crate) fn all(hosts: &Hosts) -> Vec<Payload> {
    let udp = [0x9c, 0x40, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4];
    let syn = [0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
    let sctp = [0x9c, 0x40, 0, 80, 0, 0, 0, 0, 1, 2, 3, 4, 1, 0, 0, 4];
    let echo = [8, 0, 0xf7, 0xfd, 0, 1, 0, 1];
    let (from4, to4, to6) = (hosts.from.0, hosts.to.0, hosts.to.1);
    let mut wrong_version = ipv4(hosts, 17, 0, &udp);
    wrong_version[0] = 0x65;
    let mut wrong_length = ipv4(hosts, 17, 0, &udp);
    wrong_length[2] = 0xff;
    let mut option = ipv4(hosts, 17, 0, &[&[1, 1, 1, 0][..], &udp].concat());
    (option[0], option[10], option[11]) = (0x46, 0, 0);
    let option = summed(option[..24].to_vec(), &udp);
    let mut last_hop = ipv4(hosts, 17, 0, &udp);
    (last_hop[8], last_hop[10], last_hop[11]) = (1, 0, 0);
    let last_hop = summed(last_hop[..20].to_vec(), &udp);
    vec![
        ("an experiment", [0x88, 0xb5], vec![0xab; 46]),
        ("one byte", [0x88, 0xb5], vec![0xcd]),
        ("a length instead of a type", [0, 46], vec![0x42; 46]),
        ("UDP", IPV4, ipv4(hosts, 17, 0, &udp)),
        ("a SYN", IPV4, ipv4(hosts, 6, 0, &syn)),
        ("SCTP", IPV4, ipv4(hosts, 132, 0, &sctp)),
        ("an echo", IPV4, ipv4(hosts, 1, 0, &echo)),
        (
            "an ICMP error",
            IPV4,
            ipv4(hosts, 1, 0, &[&[3, 1, 0, 0, 0, 0, 0, 0][..], &ipv4(hosts, 17, 0, &udp)].concat()),
        ),
        ("a first fragment", IPV4, ipv4(hosts, 17, 0x2000, &udp)),
        ("a later fragment", IPV4, ipv4(hosts, 17, 0x2005, &[7; 40])),
        ("the last fragment", IPV4, ipv4(hosts, 17, 0x0005, &[7; 40])),
        ("an IPv4 header that is cut short", IPV4, ipv4(hosts, 17, 0, &udp)[..13].to_vec()),
        ("UDP that is cut short", IPV4, ipv4(hosts, 17, 0, &udp)[..23].to_vec()),
        ("the wrong version", IPV4, wrong_version),
        ("more than there is", IPV4, wrong_length),
        ("an IPv4 option", IPV4, option),
        ("the last hop", IPV4, last_hop),
        ("a protocol without ports", IPV4, ipv4(hosts, 253, 0, &[9; 30])),
        ("UDP over IPv6", IPV6, ipv6(hosts, 17, &udp)),
        ("a SYN over IPv6", IPV6, ipv6(hosts, 6, &syn)),
        ("an IPv6 header that is cut short", IPV6, ipv6(hosts, 17, &udp)[..30].to_vec()),
        ("an IPv6 fragment", IPV6, ipv6(hosts, 44, &[&[17, 0, 0, 1, 0, 0, 0, 9][..], &udp].concat())),
        ("options for each hop", IPV6, ipv6(hosts, 0, &[&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp].concat())),
        ("an echo over IPv6", IPV6, ipv6(hosts, 58, &[128, 0, 0, 0, 0, 1, 0, 1])),
        ("a neighbour solicitation", IPV6, neighbor(hosts, 135, to6)),
        ("a neighbour advertisement", IPV6, neighbor(hosts, 136, hosts.from.1)),
        ("an ARP request", ARP, arp(hosts, 1, from4, to4)),
        ("an ARP reply", ARP, arp(hosts, 2, from4, to4)),
        ("an ARP probe", ARP, arp(hosts, 1, [0; 4], to4)),
        ("gratuitous ARP", ARP, arp(hosts, 1, from4, from4)),
        ("ARP that is cut short", ARP, arp(hosts, 1, from4, to4)[..17].to_vec()),
        ("ARP of other hardware", ARP, [&[0, 6][..], &arp(hosts, 1, from4, to4)[2..]].concat()),
    ]
}
