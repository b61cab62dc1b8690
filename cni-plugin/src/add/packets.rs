//! The largest packets of the container's end (`bigTcp`), as the agent says them.
//!
//! IPv6 packets of more than 64 KiB have a jumbo header of 8 bytes, which no segment gets (`ip6_xmit`). The kernel counts that header when
//! it forwards them, and refuses those whose segments fill the MTU (`skb_gso_network_seglen`, seen on Linux 6.18). So the container's routes
//! by gateways leave room for it.

use std::collections::HashSet;

use shunt_agent_api::{Attached, Packets, Reply, USUAL_PACKETS};
use shunt_netlink::link::{PacketSizes, Selector, set_packet_sizes};

use crate::error::Error;
use crate::node::{Sandbox, replace_route};
use crate::plan::Plan;
use crate::result::Route;

/// Bytes of the jumbo header (`struct hop_jumbo_hdr`).
pub(super) const JUMBO: u32 = 8;

/// The least MTU of IPv6 (RFC 8200).
const LEAST: u32 = 1280;

/// Has the container's end, whose ifindex in there is `index`, be handed packets as large as the agent says, and merge what it receives
/// into such.
pub(super) fn enlarge(
    sandbox: &mut Sandbox,
    plan: &Plan,
    (index, mtu): (u32, u32),
    attached: &Reply,
) -> Result<(), Error> {
    let Reply::Attached(Attached { packets: Some(packets), .. }) = attached else { return Ok(()) };
    let Packets { ipv4, ipv6 } = *packets;
    let has_room = ipv6 <= USUAL_PACKETS || make_room(sandbox, plan, (index, mtu));
    let ipv6 = if has_room { ipv6 } else { USUAL_PACKETS };
    sandbox.netlink.run(set_packet_sizes(index, PacketSizes { ipv6, ipv4, merges: true }))?;
    Ok(())
}

/// The same of routes that came after the sizes.
pub(super) fn follow_routes(
    sandbox: &mut Sandbox,
    plan: &Plan,
    (index, mtu): (u32, u32),
) -> Result<(), Error> {
    let sizes = sandbox.link(Selector::Index(index))?.map(|link| link.largest_packets).unwrap_or_default();
    if sizes.ipv6 > USUAL_PACKETS && !make_room(sandbox, plan, (index, mtu)) {
        let ipv4 = sizes.ipv4.max(USUAL_PACKETS);
        let sizes = PacketSizes { ipv6: USUAL_PACKETS, ipv4, merges: true };
        sandbox.netlink.run(set_packet_sizes(index, sizes))?;
    }
    Ok(())
}

/// Whether the IPv6 routes by gateways leave room for the jumbo header now.
fn make_room(sandbox: &mut Sandbox, plan: &Plan, (index, mtu): (u32, u32)) -> bool {
    let Some(narrowed) = narrowed(&plan.routes, mtu) else { return false };
    let requests = narrowed.iter().map(|route| replace_route(index, route)).collect();
    sandbox.netlink.run_all(requests).is_ok()
}

/// The IPv6 routes by gateways that leave no room yet, with MTUs that do; none where one cannot: its MTU would be too small for IPv6, or it
/// is one of equal-cost paths, which cannot be replaced one by one.
fn narrowed(routes: &[Route], mtu: u32) -> Option<Vec<Route>> {
    let most = mtu.saturating_sub(JUMBO);
    let by_gateways = routes.iter().filter(|route| route.gw.is_some_and(|gateway| gateway.is_ipv6()));
    let (mut seen, mut narrowed) = (HashSet::new(), Vec::new());
    for route in by_gateways {
        if most < LEAST || !seen.insert((route.dst.trunc(), route.priority, route.table)) {
            return None;
        }
        if route.mtu.is_none_or(|mtu| mtu == 0 || mtu > most) {
            narrowed.push(Route { mtu: Some(most), ..route.clone() });
        }
    }
    Some(narrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(dst: &str, gw: Option<&str>) -> Route {
        Route::via(dst.parse().unwrap(), gw.map(|gw| gw.parse().unwrap()))
    }

    #[test]
    fn ipv6_routes_by_gateways_leave_room_for_the_jumbo_header() {
        let routes = [
            route("0.0.0.0/0", Some("10.0.0.1")),
            route("::/0", Some("fd00::1")),
            route("fd01::/64", None),
            Route { mtu: Some(1400), ..route("fd02::/64", Some("fd00::1")) },
        ];
        let narrow = Route { mtu: Some(1492), ..route("::/0", Some("fd00::1")) };
        assert_eq!(narrowed(&routes, 1500), Some(vec![narrow]));
        assert_eq!(narrowed(&[], 1500), Some(Vec::new()));
        assert_eq!(narrowed(&routes[..1], 68), Some(Vec::new()), "IPv4 needs none");
    }

    #[test]
    fn routes_that_cannot_leave_room_are_told() {
        let mut routes = [route("::/0", Some("fd00::1")), route("::/0", Some("fd00::2"))];
        assert_eq!(narrowed(&routes[..1], 1287), None, "1280 is the least");
        assert!(narrowed(&routes[..1], 1288).is_some());
        assert_eq!(narrowed(&routes, 1500), None, "equal-cost paths");
        routes[1].priority = Some(2048);
        assert_eq!(narrowed(&routes, 1500).map(|narrowed| narrowed.len()), Some(2));
    }
}
