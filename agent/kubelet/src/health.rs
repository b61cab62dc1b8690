//! The service for health: all devices at once, whenever one changes and every few seconds.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::stream;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, async_trait};

use crate::driver::{DeviceHealth, Driver};
use crate::proto::v1::dra_resource_health_server::DraResourceHealth;
use crate::proto::v1::{
    DeviceHealth as DeviceMessage, DeviceIdentifier, HealthStatus, NodeWatchResourcesRequest,
    NodeWatchResourcesResponse,
};
use crate::proto::v1alpha1::dra_resource_health_server::DraResourceHealth as OlderDraResourceHealth;

/// How often devices are told of that have not changed: a kubelet believes nothing that is older than 30 s.
const REFRESH: Duration = Duration::from_secs(10);

/// Bytes of a message. A kubelet cuts longer ones.
const MAX_MESSAGE: usize = 1024;

/// The driver's health.
pub(crate) struct Health<D>(pub(crate) Arc<D>);

#[async_trait]
impl<D: Driver> DraResourceHealth for Health<D> {
    type NodeWatchResourcesStream = BoxStream<NodeWatchResourcesResponse>;

    async fn node_watch_resources(
        &self,
        _: Request<NodeWatchResourcesRequest>,
    ) -> Result<Response<Self::NodeWatchResourcesStream>, Status> {
        Ok(Response::new(told(self.0.health())))
    }
}

#[async_trait]
impl<D: Driver> OlderDraResourceHealth for Health<D> {
    type NodeWatchResourcesStream = BoxStream<NodeWatchResourcesResponse>;

    async fn node_watch_resources(
        &self,
        _: Request<NodeWatchResourcesRequest>,
    ) -> Result<Response<Self::NodeWatchResourcesStream>, Status> {
        Ok(Response::new(told(self.0.health())))
    }
}

/// The devices now, and again when they change or have not been told of for a while. Ends with the driver.
fn told(mut devices: watch::Receiver<Vec<DeviceHealth>>) -> BoxStream<NodeWatchResourcesResponse> {
    devices.mark_changed();
    Box::pin(stream::unfold(devices, |mut devices| async move {
        if let Ok(Err(_)) = timeout(REFRESH, devices.changed()).await {
            return None;
        }
        let now = devices.borrow_and_update().iter().map(message).collect();
        Some((Ok(NodeWatchResourcesResponse { devices: now }), devices))
    }))
}

fn message(DeviceHealth { pool, device, fault }: &DeviceHealth) -> DeviceMessage {
    let health = if fault.is_none() { HealthStatus::Healthy } else { HealthStatus::Unhealthy };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut message = fault.clone().unwrap_or_default();
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    DeviceMessage {
        device: Some(DeviceIdentifier { pool_name: pool.clone(), device_name: device.clone() }),
        health: health.into(),
        last_updated_time: i64::try_from(now.as_secs()).unwrap_or_default(),
        health_check_timeout_seconds: 0,
        message,
    }
}
