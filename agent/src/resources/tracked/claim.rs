//! Claims the tuples of datagrams that the kernel has led to containers, before the programs open host ports again: the kernel carries such a flow to its
//! end. Without a claim a server that speaks first would get another port of the node (`to_wire`), and its client hears it by none that it asked.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use aya::maps::{HashMap, Map, MapData, MapError};
use shunt_agent_api::Protocol;
use shunt_dataplane::abi::KernelFlow;
use shunt_dataplane::abi::translation::{OUTSIDE, TupleKey};
use shunt_netlink::NetlinkError;
use shunt_netlink::conntrack::{TrackedConnection, Which, walk};

use crate::datapath::encode::{protocol_number, tuple_key};
use crate::resources::clock::boot_time;

/// Claims at most: a quarter of the room, which others need as well.
const MOST: usize = 16_384;

/// How long that may take.
const LOOK: Duration = Duration::from_secs(2);

/// Why some are not claimed.
#[derive(Debug, thiserror::Error)]
enum ClaimError {
    #[error("CLAIMS: {0}")]
    Map(#[from] MapError),
    #[error(transparent)]
    Conntrack(#[from] NetlinkError),
}

/// Claims those to these ends, in the map with this pin.
pub(super) fn claim_all(ends: &HashSet<SocketAddr>, pin: &Path) {
    match try_claim_all(ends, pin) {
        Ok(claimed) => tracing::debug!(claimed, "datagrams that the kernel carries are claimed"),
        Err(error) => {
            tracing::warn!(%error, "a server that speaks first may get another port of the node");
        }
    }
}

fn try_claim_all(ends: &HashSet<SocketAddr>, pin: &Path) -> Result<usize, ClaimError> {
    let mut claims: HashMap<_, TupleKey, KernelFlow> =
        HashMap::try_from(Map::LruHashMap(MapData::from_pin(pin)?))?;
    let mut led = Vec::new();
    walk(Which::Redirected, Instant::now() + LOOK, |connection| {
        led.extend(is_led_to(&connection, ends).then_some(connection.original));
        if led.len() < MOST { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let noticed = boot_time();
    led.iter()
        .try_for_each(|original| claims.insert(tuple_key(OUTSIDE, original), KernelFlow { noticed }, 0))?;
    Ok(led.len())
}

fn is_led_to(
    TrackedConnection { original, reply, .. }: &TrackedConnection,
    ends: &HashSet<SocketAddr>,
) -> bool {
    original.protocol == protocol_number(Protocol::Udp)
        && original.destination != reply.source
        && ends.contains(&reply.source)
}
