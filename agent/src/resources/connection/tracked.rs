//! Connections that the kernel has opened and the programs carry: they end with connection tracking's entries, whatever comes of them.

use std::fs;
use std::net::SocketAddr;

use shunt_dataplane::abi::translation::TupleKey;
use shunt_dataplane::wire::Protocol;
use shunt_netlink::NetlinkError;
use shunt_netlink::conntrack::{TrackedConnection, Tracker, Tuple};

use super::pairs::{self, Connection, Flows};

/// The entries of those that connection tracking does not have any more, has otherwise, or sees end.
pub(super) fn gone(all: &Flows) -> Vec<TupleKey> {
    let carried: Vec<_> = pairs::connections(all).filter(Connection::is_opened_by_kernel).collect();
    if carried.is_empty() {
        return Vec::new();
    }
    let found = match Tracker::open().and_then(|mut tracker| ask(&mut tracker, &carried)) {
        Ok(found) => found,
        Err(error) => {
            tracing::debug!(%error, "connection tracking cannot be asked which connections it has");
            return Vec::new();
        }
    };
    let is_gone = |(connection, found): &(Connection, Option<TrackedConnection>)| {
        !found.is_some_and(|found| is_of(connection, &found))
    };
    let gone = carried.into_iter().zip(found).filter(is_gone);
    gone.flat_map(|(connection, _)| connection.entries().map(|(key, _)| key)).collect()
}

/// What connection tracking has of these. Those of TCP it would forget too early live on: it has not seen the acknowledgment of what it saw last, which was fast, and
/// waits for it no longer than `nf_conntrack_tcp_timeout_unacknowledged` (`tcp_in_window`, net/netfilter/nf_conntrack_proto_tcp.c).
fn ask(
    tracker: &mut Tracker,
    carried: &[Connection],
) -> Result<Vec<Option<TrackedConnection>>, NetlinkError> {
    let requests: Vec<_> = carried.iter().map(|connection| tuple(&connection.request)).collect();
    let found = tracker.find(&requests)?;
    let Some(established) = established() else { return Ok(found) };
    let is_short = |found: &TrackedConnection| {
        found.original.protocol == Protocol::TCP.0 && found.is_established && found.timeout < established / 2
    };
    let short: Vec<_> =
        found.iter().flatten().filter(|found| is_short(found)).map(|it| it.original).collect();
    tracker.prolong(&short, established)?;
    Ok(found)
}

/// How long connection tracking knows an established connection of TCP without packets, in seconds.
fn established() -> Option<u32> {
    let path = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established";
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Whether connection tracking translates a connection as its entries do, and no side has begun to end it: another one of the same tuple may follow, of which
/// connection tracking is to be told first.
fn is_of(connection: &Connection, found: &TrackedConnection) -> bool {
    let becomes = connection.opener.becomes;
    found.is_established
        && found.original == tuple(&connection.request)
        && found.reply == tuple(&becomes.reversed(becomes.domain))
}

fn tuple(key: &TupleKey) -> Tuple {
    Tuple {
        protocol: key.protocol,
        source: SocketAddr::new(key.source.into(), key.source_port.number()),
        destination: SocketAddr::new(key.destination.into(), key.destination_port.number()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use shunt_dataplane::abi::translation::{TRACKED, TRANSLATION_OPENER, Translation};

    use super::*;

    fn key(domain: u32, source: &str, destination: &str) -> TupleKey {
        let [source, destination]: [SocketAddr; 2] = [source, destination].map(|text| text.parse().unwrap());
        TupleKey {
            domain,
            source_port: source.port().into(),
            destination_port: destination.port().into(),
            source: source.ip().into(),
            destination: destination.ip().into(),
            protocol: 17,
            pad: [0; 3],
        }
    }

    #[test]
    fn a_connection_that_ends_or_is_translated_otherwise_by_now_is_another_one() {
        let request = key(0, "192.0.2.9:4000", "192.0.2.1:8080");
        let becomes = key(7, "192.0.2.9:4000", "10.0.0.2:80");
        let half = |becomes, flags| Translation { becomes, holder: TRACKED, flags, ..Translation::default() };
        let (opener, answerer) = (half(becomes, TRANSLATION_OPENER), half(request.reversed(0), 0));
        let connection = Connection::of(request, opener, answerer).unwrap();
        let found = |reply: &TupleKey| TrackedConnection {
            original: tuple(&request),
            reply: tuple(reply),
            is_assured: true,
            is_established: true,
            timeout: 0,
        };
        let answer = key(7, "10.0.0.2:80", "192.0.2.9:4000");
        assert!(is_of(&connection, &found(&answer)));
        let ending = TrackedConnection { is_established: false, ..found(&answer) };
        assert!(!is_of(&connection, &ending));
        for other in [("10.0.0.3:80", "192.0.2.9:4000"), ("10.0.0.2:80", "192.0.2.9:4001")] {
            assert!(!is_of(&connection, &found(&key(7, other.0, other.1))), "{other:?}");
        }
        assert_eq!(IpAddr::from(request.source), "192.0.2.9".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn connection_tracking_is_asked_only_about_its_own() {
        let request = key(0, "192.0.2.9:4000", "192.0.2.1:8080");
        let becomes = key(7, "192.0.2.9:4000", "10.0.0.2:80");
        let half = |becomes, flags| Translation { becomes, flags, ..Translation::default() };
        let entries = [
            (request, half(becomes, TRANSLATION_OPENER)),
            (becomes.reversed(7), half(request.reversed(0), 0)),
        ];
        assert!(gone(&Flows::from(entries)).is_empty(), "the programs have opened it");
    }
}
