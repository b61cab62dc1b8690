//! Whether the kernel carries a connection that it has led to a container.

use std::collections::HashSet;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use shunt_netlink::conntrack::{TrackedConnection, Which, walk};

/// How long one look may take. What was not looked at by then may be carried.
const LOOK: Duration = Duration::from_secs(2);

/// Whether there is one to any of these addresses, or that is not known: it ends with the first.
pub(super) fn is_any_carried(places: &HashSet<IpAddr>) -> bool {
    let mut is_found = false;
    let walked = walk(Which::Redirected, Instant::now() + LOOK, |connection| {
        is_found = is_led_to(&connection, places);
        if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match walked {
        Ok(is_all) => is_found || !is_all,
        Err(error) => {
            tracing::debug!(%error, "connections to host ports may be carried: they cannot be listed");
            true
        }
    }
}

/// Whether a connection was led to one of these addresses.
fn is_led_to(
    TrackedConnection { original, reply, .. }: &TrackedConnection,
    places: &HashSet<IpAddr>,
) -> bool {
    original.destination != reply.source && places.contains(&reply.source.ip())
}

#[cfg(test)]
mod tests {
    use shunt_netlink::conntrack::Tuple;

    use super::*;

    #[test]
    fn what_was_not_translated_was_not_led() {
        let connection = |to: &str, answers: &str| {
            let tuple = |source: &str, destination: &str| Tuple {
                protocol: 6,
                source: source.parse().unwrap(),
                destination: destination.parse().unwrap(),
            };
            let (original, reply) = (tuple("192.0.2.9:4000", to), tuple(answers, "192.0.2.9:4000"));
            TrackedConnection { original, reply, is_assured: true, is_established: true, timeout: 0 }
        };
        let places = HashSet::from(["10.77.0.3".parse().unwrap()]);
        assert!(is_led_to(&connection("192.0.2.1:8000", "10.77.0.3:7000"), &places));
        assert!(!is_led_to(&connection("10.77.0.3:7000", "10.77.0.3:7000"), &places), "as it was sent");
        assert!(!is_led_to(&connection("192.0.2.1:8000", "10.77.0.4:7000"), &places), "to another one");
    }
}
