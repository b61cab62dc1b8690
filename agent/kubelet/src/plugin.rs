//! The service for claims: each claim of a call is done by itself, with an answer of its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status, async_trait};

use crate::driver::{ClaimName, Device, Driver};
use crate::proto::dra::dra_plugin_server::DraPlugin;
use crate::proto::dra::{
    Claim, Device as DeviceMessage, NodePrepareResourceResponse, NodePrepareResourcesRequest,
    NodePrepareResourcesResponse, NodeUnprepareResourceResponse, NodeUnprepareResourcesRequest,
    NodeUnprepareResourcesResponse,
};

/// How long a call may take. The kubelet waits for 45 s.
const DEADLINE: Duration = Duration::from_secs(30);

/// Claims of one call. A kubelet's call has those of one pod.
const MAX_CLAIMS: usize = 256;

/// Claims that are done at a time.
const AT_A_TIME: usize = 8;

/// The driver's claims.
pub(crate) struct Plugin<D>(pub(crate) Arc<D>);

#[async_trait]
impl<D: Driver> DraPlugin for Plugin<D> {
    async fn node_prepare_resources(
        &self,
        request: Request<NodePrepareResourcesRequest>,
    ) -> Result<Response<NodePrepareResourcesResponse>, Status> {
        let prepared = each(request.into_inner().claims, |claim| self.0.prepare(claim)).await?;
        let claims = prepared.into_iter().map(|(uid, outcome)| {
            let answer = match outcome {
                Ok(devices) => NodePrepareResourceResponse {
                    devices: devices.into_iter().map(message).collect(),
                    error: String::new(),
                },
                Err(error) => NodePrepareResourceResponse { devices: Vec::new(), error },
            };
            (uid, answer)
        });
        Ok(Response::new(NodePrepareResourcesResponse { claims: claims.collect() }))
    }

    async fn node_unprepare_resources(
        &self,
        request: Request<NodeUnprepareResourcesRequest>,
    ) -> Result<Response<NodeUnprepareResourcesResponse>, Status> {
        let done = each(request.into_inner().claims, |claim| self.0.unprepare(claim)).await?;
        let claims = done.into_iter().map(|(uid, outcome)| {
            (uid, NodeUnprepareResourceResponse { error: outcome.err().unwrap_or_default() })
        });
        Ok(Response::new(NodeUnprepareResourcesResponse { claims: claims.collect() }))
    }
}

/// Does something for each claim, some at a time. What is not done by the deadline has failed.
async fn each<T, F>(
    claims: Vec<Claim>,
    work: impl Fn(ClaimName) -> F,
) -> Result<Vec<(String, Result<T, String>)>, Status>
where
    F: Future<Output = Result<T, String>>,
{
    if claims.len() > MAX_CLAIMS {
        let why = format!("{} claims in one call, more than {MAX_CLAIMS}", claims.len());
        return Err(Status::invalid_argument(why));
    }
    let deadline = Instant::now() + DEADLINE;
    let done = claims.into_iter().map(|Claim { namespace, uid, name }| {
        let doing = work(ClaimName { namespace, name, uid: uid.clone() });
        async move {
            let late = |_| Err(format!("not done within {} s", DEADLINE.as_secs()));
            (uid, timeout_at(deadline, doing).await.unwrap_or_else(late))
        }
    });
    Ok(stream::iter(done).buffer_unordered(AT_A_TIME).collect().await)
}

fn message(Device { request, pool, device }: Device) -> DeviceMessage {
    DeviceMessage {
        request_names: vec![request],
        pool_name: pool,
        device_name: device,
        cdi_device_ids: Vec::new(),
    }
}
