//! The uplinks as a `ResourceSlice` of the node.
//!
//! The slice is known by its driver and its node. Where somebody else's object has its name, it gets another one, always the same.

use std::collections::BTreeSet;

use k8s_openapi::api::resource::v1::ResourceSlice;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::Value;
use shunt_agent_api::CapacityReport;

use super::difference::differences;
use super::error::PublishError;
use super::session::{Publication, within};
use super::slice_name::slice_name;
use crate::capacity::slice::{DRIVER, NodeNameError, resource_slice};

/// Who writes, in the object's managed fields.
const MANAGER: &str = "shunt-agent";

/// How often a write is begun anew because the object was not what it was thought to be.
const TRIES: usize = 8;

/// The node's slice.
pub(super) struct Slices {
    api: Api<ResourceSlice>,
    node: String,
    /// What the server has dropped of what it was given. Not to be written again and again.
    dropped: BTreeSet<String>,
}

impl Slices {
    pub(super) fn new(client: Client, node: &str) -> Self {
        Self { api: Api::all(client), node: node.to_owned(), dropped: BTreeSet::new() }
    }

    /// The slice as it is to be.
    fn wanted(&self, capacity: &CapacityReport) -> Result<ResourceSlice, PublishError> {
        const MAKING: &str = "making the slice";
        let slice = resource_slice(&self.node, capacity);
        let slice = slice.map_err(|NodeNameError(_)| PublishError::Nonsense(MAKING))?;
        serde_json::from_value(slice).map_err(|_| PublishError::Nonsense(MAKING))
    }

    /// What there is to do, but for what the server drops anyway.
    fn to_do(&self, object: &ResourceSlice, wanted: &ResourceSlice) -> BTreeSet<String> {
        let found = differences(
            &spec(wanted, object.spec.pool.generation),
            &spec(object, object.spec.pool.generation),
        );
        found.difference(&self.dropped).cloned().collect()
    }

    /// Writes once; none if the object was not what it was thought to be.
    async fn write(
        &self,
        object: Option<&ResourceSlice>,
        mut wanted: ResourceSlice,
    ) -> Result<Option<ResourceSlice>, PublishError> {
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let written = match object {
            Some(object) => {
                let name = name_of(object);
                wanted.metadata.name = Some(name.clone());
                wanted.metadata.resource_version.clone_from(&object.metadata.resource_version);
                // Whoever allocates must not mix what was with what is.
                wanted.spec.pool.generation = object.spec.pool.generation.saturating_add(1);
                within("replacing the slice", self.api.replace(&name, &params, &wanted)).await
            }
            None => within("creating the slice", self.api.create(&params, &wanted)).await,
        };
        match written {
            Err(PublishError::Request { source, .. }) if is_stale(&source) => Ok(None),
            written => written.map(Some),
        }
    }
}

impl Publication for Slices {
    type Object = ResourceSlice;

    fn api(&self) -> &Api<ResourceSlice> {
        &self.api
    }

    fn selector(&self) -> String {
        format!("spec.nodeName={}", self.node)
    }

    fn is_ours(&self, slice: &ResourceSlice) -> bool {
        slice.spec.driver == DRIVER && slice.spec.node_name.as_ref() == Some(&self.node)
    }

    fn is_settled(&self, object: Option<&ResourceSlice>, capacity: &CapacityReport) -> bool {
        let wanted = self.wanted(capacity).ok();
        object.zip(wanted).is_some_and(|(object, wanted)| self.to_do(object, &wanted).is_empty())
    }

    async fn settle(
        &mut self,
        object: Option<ResourceSlice>,
        capacity: &CapacityReport,
    ) -> Result<Option<ResourceSlice>, PublishError> {
        let mut wanted = self.wanted(capacity)?;
        let mut object = object;
        let mut taken = 0;
        for _ in 0..TRIES {
            if object.as_ref().is_some_and(|object| self.to_do(object, &wanted).is_empty()) {
                return Ok(object);
            }
            let name = object.as_ref().map_or_else(|| slice_name(&self.node, taken), name_of);
            wanted.metadata.name = Some(name.clone());
            let Some(written) = self.write(object.as_ref(), wanted.clone()).await? else {
                object = within("reading the slice", self.api.get_opt(&name)).await?;
                if object.take_if(|found| !self.is_ours(found)).is_some() {
                    tracing::warn!(name, "somebody else's slice has this name: the node's gets another one");
                    taken += 1;
                }
                continue;
            };
            let generation = written.spec.pool.generation;
            self.dropped = differences(&spec(&wanted, generation), &spec(&written, generation));
            let altered: Vec<_> = self.dropped.iter().filter(|path| !path.ends_with('?')).collect();
            if !altered.is_empty() {
                tracing::warn!(?altered, "the API server keeps something else than it was given");
            }
            tracing::info!(
                slice = name,
                generation,
                devices = wanted.spec.devices.as_ref().map_or(0, Vec::len),
                "published"
            );
            return Ok(Some(written));
        }
        Err(PublishError::Contested("the slice"))
    }

    fn remark(&self) -> Option<String> {
        let paths: Vec<_> = self.dropped.iter().map(|path| path.trim_end_matches('?')).collect();
        (!paths.is_empty()).then(|| {
            format!(
                "the API server has not kept {}; consumable capacity (DRAConsumableCapacity) may be turned off there",
                paths.join(", ")
            )
        })
    }
}

fn name_of(slice: &ResourceSlice) -> String {
    slice.metadata.name.clone().unwrap_or_default()
}

/// What is compared: everything that is said, under this generation. A server leaves out a list of no devices.
fn spec(slice: &ResourceSlice, generation: i64) -> Value {
    let mut spec = slice.spec.clone();
    spec.pool.generation = generation;
    spec.devices.get_or_insert_default();
    serde_json::to_value(spec).unwrap_or_default()
}

/// The object is there already, is gone, or has changed meanwhile.
fn is_stale(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 404 | 409))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_slice_of_no_devices_is_what_a_server_keeps_of_it() {
        let of = |devices: Value| -> ResourceSlice {
            let pool = json!({ "name": "one", "generation": 1, "resourceSliceCount": 1 });
            let mut slice = json!({ "metadata": { "name": "one" }, "spec": { "driver": DRIVER, "nodeName": "one", "pool": pool } });
            if !devices.is_null() {
                slice["spec"]["devices"] = devices;
            }
            serde_json::from_value(slice).unwrap()
        };
        let kept = spec(&of(Value::Null), 2);
        assert!(differences(&spec(&of(json!([])), 2), &kept).is_empty());
        let one = spec(&of(json!([{ "name": "eth0" }])), 2);
        assert!(!differences(&one, &kept).is_empty() && !differences(&kept, &one).is_empty());
    }
}
