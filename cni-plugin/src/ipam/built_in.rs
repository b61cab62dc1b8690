//! The IPAM in this process.

use std::net::IpAddr;

use super::error::IpamError;
use super::host_local::{self, Allocation, Request};
use crate::call::{Call, Version};
use crate::config::Config;
use crate::result::{AddResult, Ip};

/// What the built-in IPAM is asked; `requested` are the addresses that the runtime insists on.
fn request<'a>(config: &'a Config, call: &'a Call, requested: Vec<IpAddr>) -> Request<'a> {
    Request {
        network: &config.network.name,
        container: &call.container,
        ifname: &call.ifname,
        config: config.ipam(),
        requested,
        ip_ranges: config.network.runtime_config.ip_ranges.as_ref(),
    }
}

/// The addresses that the runtime insists on, from all three places where it can say so.
pub(crate) fn requested(config: &Config, call: &Call) -> Result<Vec<IpAddr>, IpamError> {
    let network = &config.network;
    let texts = call.arguments.ips.iter().chain(&network.args.cni.ips).chain(&network.runtime_config.ips);
    texts
        .map(|text| {
            let address = text.split_once('/').map_or(text.as_str(), |(address, _)| address);
            address.trim().parse().map_err(|_| IpamError::Requested(text.clone()))
        })
        .collect()
}

/// Whether the configuration can be used, in the version that the caller speaks. Reads no file.
pub(crate) fn validate(config: &Config) -> Result<(), IpamError> {
    let ranges = config.network.runtime_config.ip_ranges.as_ref();
    let judge = if config.version < Version::V0_3_0 {
        host_local::one_address_per_family
    } else {
        host_local::validate
    };
    match judge(config.ipam(), ranges) {
        Err(host_local::Error::NoRanges) if ranges_by_runtime(config) => Ok(()),
        judged => Ok(judged?),
    }
}

/// Allocates.
pub(crate) fn add(config: &Config, call: &Call) -> Result<AddResult, IpamError> {
    if config.version < Version::V0_3_0 {
        host_local::one_address_per_family(config.ipam(), config.network.runtime_config.ip_ranges.as_ref())?;
    }
    Ok(result(host_local::add(&request(config, call, requested(config, call)?))?))
}

fn result(allocation: Allocation) -> AddResult {
    let ip = |ip: host_local::AllocatedIp| {
        let address = ipnet::IpNet::new(ip.address, ip.prefix).ok()?;
        Some(Ip { interface: None, address, gateway: ip.gateway })
    };
    AddResult {
        interfaces: Vec::new(),
        ips: allocation.ips.into_iter().filter_map(ip).collect(),
        routes: allocation.routes,
        dns: allocation.dns,
    }
}

/// Releases.
pub(crate) fn del(config: &Config, call: &Call) -> Result<(), IpamError> {
    Ok(host_local::del(&request(config, call, Vec::new()))?)
}

/// Vouches for the allocation: of the previous result's addresses, those that are this IPAM's.
pub(crate) fn check(config: &Config, call: &Call) -> Result<(), IpamError> {
    let previous = config.prev_result().ok().flatten();
    let expected: Vec<IpAddr> =
        previous.iter().flat_map(|result| &result.ips).map(|ip| ip.address.addr()).collect();
    Ok(host_local::check(&request(config, call, Vec::new()), &expected)?)
}

/// Releases what no listed attachment holds.
pub(crate) fn gc(config: &Config, valid: &[(String, String)]) -> Result<(), IpamError> {
    Ok(host_local::gc(&config.network.name, config.ipam(), valid)?)
}

/// Says whether an address could be had.
pub(crate) fn status(config: &Config) -> Result<(), IpamError> {
    let ranges = config.network.runtime_config.ip_ranges.as_ref();
    match host_local::status(&config.network.name, config.ipam(), ranges) {
        Err(host_local::Error::NoRanges) if ranges_by_runtime(config) => Ok(()),
        status => Ok(status?),
    }
}

/// Whether the runtime brings the ranges with each ADD; STATUS and VALIDATE may come without them.
pub(crate) fn ranges_by_runtime(config: &Config) -> bool {
    config.network.capabilities.get("ipRanges") == Some(&true.into())
}
