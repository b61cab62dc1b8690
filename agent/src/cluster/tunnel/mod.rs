//! Nodes that are not on a link of this one: through one VXLAN device (RFC 7348), which learns nothing from what comes in.
//!
//! In: the pods of such nodes and the nodes' addresses. Out: the device, an FDB entry for each node, a neighbour and a route for each
//! prefix of pods. The next hop is the first address of the prefix, taken to be on the link; it is reckoned, as is the station
//! ([`station`]), so that nodes publish nothing. Device, entries and addresses go with the device.

mod addresses;
mod device;
mod entries;
mod far;
mod station;
mod underlay;

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use shunt_netlink::kept_route::KeptRoute;
use shunt_netlink::link::Vxlan;
use shunt_netlink::{Connection, NetlinkError, Request};

use self::device::Wanted;
use self::entries::Entries;
pub(super) use self::far::Far;
use super::mtu::{self, LEAST_OF_IPV6, PodsMtu};
use super::plan::Plan;
use crate::config::VxlanOptions;

/// What has become of the device.
#[derive(Default)]
pub(super) struct Tunnel {
    /// The routes by it that are to be.
    pub(super) routes: Vec<KeptRoute>,
    /// The pods for which nothing can be decided now, say because this node's address is gone for a moment.
    pub(super) undecided: BTreeSet<IpNet>,
    /// What is to be done once these are the only ones.
    pub(super) stale: Vec<Request>,
    /// The MTU that pods are to have.
    pub(super) mtu: PodsMtu,
    pub(super) warnings: Vec<String>,
}

impl Tunnel {
    /// Has no device.
    ///
    /// # Errors
    /// Netlink's.
    pub(super) fn none(connection: &mut Connection, options: &VxlanOptions) -> Result<Self, NetlinkError> {
        device::remove(connection, &options.device)?;
        Ok(Self { mtu: PodsMtu::Kernels, ..Self::default() })
    }

    /// Has the device, and all that leads to these.
    ///
    /// # Errors
    /// The kernel's tables cannot be read.
    pub(super) fn keep(
        connection: &mut Connection,
        options: &VxlanOptions,
        plan: &Plan,
        far: &[Far],
    ) -> Result<Self, NetlinkError> {
        let undecided = far.iter().map(|far| far.pods).collect();
        let mut tunnel = Self { undecided, ..Self::default() };
        let Some(local) = plan.local else {
            tunnel.warnings.push(
                "this node has no InternalIP that encapsulated packets could come from: no packet is led to nodes beyond the link"
                    .to_owned(),
            );
            return Ok(tunnel);
        };
        let Some(underlay) = underlay::mtu(connection, local, far)? else {
            tunnel.warnings.push(format!(
                "no interface has this node's InternalIP {local}: no packet is led to nodes beyond the link"
            ));
            return Ok(tunnel);
        };
        let Some(mtu) = mtu::inside(underlay, local) else {
            tunnel.warnings.push(format!(
                "the MTU to other nodes, {underlay}, is too small for VXLAN: no packet is led to nodes beyond the link"
            ));
            return Ok(tunnel);
        };
        tunnel.mtu = mtu::of_pods(mtu, plan.own.iter().any(is_of_ipv6));
        let fitting = tunnel.fitting(far, underlay, mtu, local);
        let vxlan = Vxlan { id: options.id, port: options.port, local, learns: false };
        let mac = station::of(local);
        let index = match device::keep(connection, &Wanted { name: &options.device, vxlan, mac, mtu }) {
            Ok(index) => index,
            Err(why) => {
                tunnel.warnings.push(why.to_string());
                return Ok(tunnel);
            }
        };
        tunnel.undecided.clear();
        let own: Vec<IpNet> =
            plan.own.iter().copied().filter(|own| mtu >= LEAST_OF_IPV6 || !is_of_ipv6(own)).collect();
        tunnel.warnings.extend(addresses::keep(connection, index, &own).err().map(|error| error.to_string()));
        let entries = Entries::keep(connection, index, mac, &fitting)?;
        tunnel.routes = entries.led.iter().map(|far| route(index, far.pods)).collect();
        tunnel.stale = entries.stale;
        tunnel.warnings.extend(entries.warnings);
        Ok(tunnel)
    }

    /// Those that the device's MTU is large enough for.
    fn fitting(&mut self, far: &[Far], underlay: u32, mtu: u32, local: IpAddr) -> Vec<Far> {
        let (fitting, unfit): (Vec<Far>, Vec<Far>) =
            far.iter().partition(|far| mtu >= LEAST_OF_IPV6 || !is_of_ipv6(&far.pods));
        if let Some(first) = unfit.first() {
            self.warnings.push(format!(
                "the MTU to other nodes, {underlay}, leaves {mtu} in VXLAN, and IPv6 needs {LEAST_OF_IPV6}: no packet is led to {} and {} \
                 more prefixes of IPv6; have an MTU of {} at least",
                first.pods,
                unfit.len() - 1,
                LEAST_OF_IPV6 + mtu::overhead(local)
            ));
        }
        fitting
    }
}

fn route(index: u32, pods: IpNet) -> KeptRoute {
    KeptRoute { destination: pods, gateway: pods.network(), index, on_link: true }
}

fn is_of_ipv6(prefix: &IpNet) -> bool {
    prefix.addr().is_ipv6()
}
