//! What a `ResourceClaim` says of this node: which device it was given, how much of it, and for which pod.

use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1::{
    DeviceRequestAllocationResult, ResourceClaim, ResourceClaimConsumerReference,
};
use k8s_openapi::apimachinery::pkg::api::resource;
use shunt_kubelet::ClaimName;

use crate::capacity::Quantity;
use crate::capacity::quantity::QuantityError;
use crate::capacity::slice::DRIVER;
use crate::claims::{Claim, Consumer, Share};

/// Devices of one claim (`AllocationResultsMaxSize`, staging/src/k8s.io/api/resource/v1/types.go).
const MAX_SHARES: usize = 32;

/// Pods that an error names.
const NAMED: usize = 4;

/// Why a claim cannot be prepared here.
#[derive(Debug, thiserror::Error)]
pub(super) enum AllocationError {
    #[error("the claim of this name has another UID, {0}: it was deleted and made anew")]
    Other(String),
    #[error("it is not allocated")]
    NotAllocated,
    #[error("it is allocated by other drivers only, and not by {DRIVER}")]
    Foreign,
    #[error("it is reserved for no pod")]
    NotReserved,
    #[error("it is reserved for {resource} {name}, which is no pod")]
    NoPod { resource: String, name: String },
    #[error("{count} pods share it ({names}): that needs limits of groups, which this version does not have")]
    Shared { count: usize, names: String },
    #[error("it has {0} devices, more than {MAX_SHARES}")]
    TooMany(usize),
    #[error("device {device} is of pool {pool}, which is not this node's, {own}")]
    Pool { device: String, pool: String, own: String },
    #[error("device {device} has no consumedCapacity of {key}: is DRAConsumableCapacity turned off?")]
    Missing { device: String, key: &'static str },
    #[error("device {device}: {key} {text:?} {source}")]
    Quantity { device: String, key: &'static str, text: String, source: QuantityError },
    #[error("device {device}: {key} is 0, which is no bandwidth")]
    Zero { device: String, key: &'static str },
}

/// Reads a claim. The devices' uplinks are not known yet.
///
/// # Errors
/// [`AllocationError`].
pub(super) fn read(found: &ResourceClaim, asked: &ClaimName, pool: &str) -> Result<Claim, AllocationError> {
    let uid = found.metadata.uid.clone().unwrap_or_default();
    if uid != asked.uid {
        return Err(AllocationError::Other(uid));
    }
    let status = found.status.as_ref();
    let allocation = status.and_then(|status| status.allocation.as_ref());
    let devices = allocation.ok_or(AllocationError::NotAllocated)?.devices.as_ref();
    let results = devices.and_then(|devices| devices.results.as_deref()).unwrap_or_default();
    let ours: Vec<_> = results.iter().filter(|result| result.driver == DRIVER).collect();
    match ours.len() {
        0 => return Err(AllocationError::Foreign),
        count if count > MAX_SHARES => return Err(AllocationError::TooMany(count)),
        _ => {}
    }
    let reserved = status.and_then(|status| status.reserved_for.as_deref()).unwrap_or_default();
    Ok(Claim {
        uid,
        namespace: asked.namespace.clone(),
        name: asked.name.clone(),
        pod: consumer(reserved)?,
        shares: ours.into_iter().map(|result| share(result, pool)).collect::<Result<_, _>>()?,
    })
}

/// What a claim has of the node's uplinks, whether it can be prepared or not; none where it has nothing of them. Its pod is nobody where it
/// is not reserved for one pod. Figures that make no sense are refused when the claim is prepared, and count as nothing here.
pub(super) fn allocated(found: &ResourceClaim, pool: &str) -> Option<Claim> {
    let status = found.status.as_ref()?;
    let results = status.allocation.as_ref()?.devices.as_ref()?.results.as_deref()?;
    let ours = results.iter().filter(|result| result.driver == DRIVER && result.pool == pool);
    let shares: Vec<_> = ours.take(MAX_SHARES).filter_map(|result| share(result, pool).ok()).collect();
    let metadata = found.metadata.clone();
    (!shares.is_empty()).then(|| Claim {
        uid: metadata.uid.unwrap_or_default(),
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        pod: consumer(status.reserved_for.as_deref().unwrap_or_default()).unwrap_or_default(),
        shares,
    })
}

/// The one pod that a claim is reserved for.
pub(super) fn consumer(reserved: &[ResourceClaimConsumerReference]) -> Result<Consumer, AllocationError> {
    match reserved {
        [] => Err(AllocationError::NotReserved),
        [one] if one.resource == "pods" && one.api_group.as_deref().unwrap_or_default().is_empty() => {
            Ok(Consumer { name: one.name.clone(), uid: one.uid.clone() })
        }
        [one] => Err(AllocationError::NoPod { resource: one.resource.clone(), name: one.name.clone() }),
        several => {
            let names: Vec<_> = several.iter().take(NAMED).map(|pod| pod.name.as_str()).collect();
            Err(AllocationError::Shared { count: several.len(), names: names.join(", ") })
        }
    }
}

fn share(result: &DeviceRequestAllocationResult, pool: &str) -> Result<Share, AllocationError> {
    let device = result.device.clone();
    if result.pool != pool {
        return Err(AllocationError::Pool { device, pool: result.pool.clone(), own: pool.to_owned() });
    }
    let none = BTreeMap::new();
    let consumed = result.consumed_capacity.as_ref().unwrap_or(&none);
    Ok(Share {
        request: result.request.clone(),
        pool: result.pool.clone(),
        uplink: String::new(),
        share_id: result.share_id.clone(),
        egress: rate(consumed, &device, "egressBandwidth")?,
        ingress: rate(consumed, &device, "ingressBandwidth")?,
        device,
    })
}

/// Bits a second of one way.
fn rate(
    consumed: &BTreeMap<String, resource::Quantity>,
    device: &str,
    key: &'static str,
) -> Result<u64, AllocationError> {
    let device = || device.to_owned();
    let Some(resource::Quantity(text)) = consumed.get(key) else {
        return Err(AllocationError::Missing { device: device(), key });
    };
    match text.parse::<Quantity>() {
        Ok(Quantity(0)) => Err(AllocationError::Zero { device: device(), key }),
        Ok(Quantity(rate)) => Ok(rate),
        Err(source) => Err(AllocationError::Quantity { device: device(), key, text: text.clone(), source }),
    }
}

#[cfg(test)]
#[path = "allocation_tests.rs"]
mod tests;
