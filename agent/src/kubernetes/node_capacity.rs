//! The uplinks as capacity of the node, in Mbit/s: what containers may request where there is no `ResourceSlice`.
//!
//! The scheduler honours it, and the kubelet copies it to what is allocatable. All uplinks are one sum.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::api::resource;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use shunt_agent_api::{CapacityReport, UplinkReport};

use super::error::PublishError;
use super::session::{Publication, within};
use crate::capacity::Quantity;

/// What is summed over the uplinks.
type Figure = fn(&UplinkReport) -> u64;

/// The extended resources.
const RESOURCES: [(&str, Figure); 2] = [
    ("shunt.dev/egress-mbps", |uplink| uplink.egress.total),
    ("shunt.dev/ingress-mbps", |uplink| uplink.ingress.total),
];

/// Bits in a megabit.
const MEGABIT: u64 = 1_000_000;

/// The node, of which two figures are the agent's.
pub(super) struct NodeCapacity {
    api: Api<Node>,
    node: String,
}

impl NodeCapacity {
    pub(super) fn new(client: Client, node: &str) -> Self {
        Self { api: Api::all(client), node: node.to_owned() }
    }
}

/// Whole megabits a second, each direction, by the resource's name.
fn wanted(capacity: &CapacityReport) -> BTreeMap<&'static str, u64> {
    let sum =
        |figure: Figure| capacity.uplinks.iter().fold(0u64, |sum, uplink| sum.saturating_add(figure(uplink)));
    RESOURCES.into_iter().map(|(name, figure)| (name, sum(figure) / MEGABIT)).collect()
}

impl Publication for NodeCapacity {
    type Object = Node;

    fn api(&self) -> &Api<Node> {
        &self.api
    }

    fn selector(&self) -> String {
        format!("metadata.name={}", self.node)
    }

    fn is_ours(&self, node: &Node) -> bool {
        node.metadata.name.as_ref() == Some(&self.node)
    }

    fn is_settled(&self, node: Option<&Node>, capacity: &CapacityReport) -> bool {
        let capacity_of = |node: &Node| node.status.as_ref().and_then(|status| status.capacity.clone());
        let said = node.and_then(capacity_of).unwrap_or_default();
        let figure = |resource::Quantity(text): &resource::Quantity| text.parse::<Quantity>().ok();
        let is_said = |(name, value): (&str, u64)| said.get(name).and_then(figure) == Some(Quantity(value));
        wanted(capacity).into_iter().all(is_said)
    }

    async fn settle(
        &mut self,
        _: Option<Node>,
        capacity: &CapacityReport,
    ) -> Result<Option<Node>, PublishError> {
        const PATCHING: &str = "patching the node's capacity";
        let figures: BTreeMap<_, _> =
            wanted(capacity).into_iter().map(|(name, value)| (name, value.to_string())).collect();
        let patch = Patch::Merge(json!({ "status": { "capacity": figures } }));
        let node =
            within(PATCHING, self.api.patch_status(&self.node, &PatchParams::default(), &patch)).await?;
        if !self.is_settled(Some(&node), capacity) {
            return Err(PublishError::Nonsense(PATCHING));
        }
        tracing::info!(node = self.node, ?figures, "published as the node's capacity");
        Ok(Some(node))
    }

    fn remark(&self) -> Option<String> {
        None
    }
}
