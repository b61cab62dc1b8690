//! Values that are out of bounds, that contradict each other, or that ask for what is not built yet.
//!
//! An operator who asked for isolation, a limit or a translation must never silently get none: every key that has no
//! dataplane behind it is refused by name.

use super::big_tcp::big_tcp;
use super::bridge::Bridge;
use super::error::ConfigError;
use super::ingress::{ingress_policy, storm_control};
use super::membership::membership;
use super::network::Network;
use super::unmasqueraded::unmasqueraded;
use crate::call::check_interface;
use crate::mac::Mac;

/// The kernel's bounds for a bridge and a veth (`ETH_MIN_MTU`, `ETH_MAX_MTU`).
pub(super) const MTU: std::ops::RangeInclusive<u32> = 68..=65535;

pub(super) fn invalid(key: &'static str, why: impl Into<String>) -> ConfigError {
    ConfigError::Invalid { key, why: why.into() }
}

/// Checks the values of a configuration for a bridge port.
///
/// # Errors
/// [`ConfigError::Invalid`], [`ConfigError::NotBuilt`].
pub(super) fn check_bridge(network: &Network, bridge: &Bridge) -> Result<(), ConfigError> {
    check_values(network, bridge)?;
    check_built(bridge)
}

fn check_values(network: &Network, bridge: &Bridge) -> Result<(), ConfigError> {
    check_interface(&bridge.bridge).map_err(|error| invalid("bridge", error.to_string()))?;
    if let Some(uplink) = bridge.uplink() {
        check_interface(uplink).map_err(|error| invalid("uplink", error.to_string()))?;
        if uplink == bridge.bridge {
            return Err(invalid("uplink", "is the bridge itself"));
        }
    } else if bridge.uplink_move_address {
        return Err(invalid("uplinkMoveAddress", "needs an `uplink`"));
    }
    if bridge.mtu != 0 && !MTU.contains(&bridge.mtu) {
        return Err(invalid("mtu", format!("{} is not between 68 and 65535", bridge.mtu)));
    }
    if bridge.hairpin_mode && bridge.promisc_mode {
        return Err(invalid("promiscMode", "cannot be set together with hairpinMode"));
    }
    membership(bridge)?;
    storm_control(bridge)?;
    big_tcp(bridge)?;
    unmasqueraded(bridge)?;
    let ipam = network.ipam.as_ref().is_some_and(|ipam| !ipam.r#type.is_empty());
    if bridge.disable_container_interface && ipam {
        return Err(invalid("disableContainerInterface", "cannot be set together with an IPAM"));
    }
    one_of("ipMasqBackend", bridge.ip_masq_backend.as_deref(), &["iptables", "nftables", ""])?;
    // A VLAN's interface is no port, and `bridge` makes ports only.
    one_of("mode", bridge.mode.as_deref(), &["bridge", ""])?;
    one_of("filters", bridge.filters.as_deref(), &["auto", "heed", "bypass", ""])?;
    one_of("ingressPolicy", bridge.ingress_policy.as_deref(), &["open", "same-bridge", "isolated", ""])?;
    for (key, mac) in
        [("runtimeConfig.mac", &network.runtime_config.mac), ("args.cni.mac", &network.args.cni.mac)]
    {
        if let Some(mac) = mac.as_deref().filter(|mac| !mac.is_empty()) {
            mac.parse::<Mac>().map_err(|error| invalid(key, error.to_string()))?;
        }
    }
    Ok(())
}

pub(super) fn one_of(key: &'static str, value: Option<&str>, allowed: &[&str]) -> Result<(), ConfigError> {
    match value {
        Some(value) if !allowed.contains(&value) => {
            let named: Vec<&str> = allowed.iter().copied().filter(|name| !name.is_empty()).collect();
            Err(invalid(key, format!("`{value}` is none of {}", named.join(", "))))
        }
        _ => Ok(()),
    }
}

fn check_built(bridge: &Bridge) -> Result<(), ConfigError> {
    let vlans = membership(bridge)?;
    let is_gateway = bridge.is_gateway || bridge.is_default_gateway;
    if is_gateway && vlans.as_ref().is_some_and(|vlans| vlans.untagged.is_none()) {
        return Err(invalid(
            "isGateway",
            "needs a VLAN of the port's untagged frames, which the gateway is in",
        ));
    }
    let in_vlans = vlans.is_some();
    let unbuilt = [
        // All routed packets arrive by the VLAN's gateway, so their origin cannot be told.
        ("ingressPolicy", in_vlans && is_gateway && !ingress_policy(bridge).is_open()),
        ("hairpinMode", in_vlans && bridge.hairpin_mode),
    ];
    match unbuilt.into_iter().find(|(_, asked)| *asked) {
        Some((key, _)) => Err(ConfigError::NotBuilt { key }),
        None => Ok(()),
    }
}
