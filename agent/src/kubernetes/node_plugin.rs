//! The driver's place at the kubelet, kept as long as the agent runs: sockets, health, and what the status says of the registration.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use shunt_kubelet::{DeviceHealth, serve};
use tokio::sync::{Mutex, watch};
use tokio::time::sleep;

use super::allocated;
use super::claim_status;
use super::driver::ClaimDriver;
use super::forgotten;
use super::node_name;
use crate::agent::Core;
use crate::capacity::slice::{DRIVER, NodeNameError};
use crate::config::{Admission, KubernetesOptions};
use crate::requests::devices::DeviceState;

/// Who remarks.
const WHO: &str = "kubelet";

/// How often the uplinks are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long until the sockets are tried again.
const RETRY: Duration = Duration::from_secs(2);

/// Serves the kubelet as long as the agent runs.
#[derive(Debug)]
pub struct NodePlugin {
    options: KubernetesOptions,
    node: String,
    root: PathBuf,
}

impl NodePlugin {
    /// The plugin for a kubelet with this root directory. Nothing is opened yet.
    ///
    /// # Errors
    /// [`NodeNameError`].
    pub fn new(options: &KubernetesOptions, root: PathBuf) -> Result<Self, NodeNameError> {
        let node = node_name::of_options(options)?;
        Ok(Self { options: options.clone(), node, root })
    }

    /// Serves, and goes on doing so, until it is dropped.
    pub async fn run(self, core: Core) -> Infallible {
        let Self { options, node, root } = self;
        let (health, _) = watch::channel(Vec::new());
        let waiting = Err("no kubelet has asked for it yet".to_owned());
        let (registration, outcome) = watch::channel(waiting);
        let client = Mutex::default();
        let driver =
            Arc::new(ClaimDriver { options, node, core: core.clone(), client, health, registration });
        core.consult(Arc::clone(&driver) as _);
        let looked = look_after(&driver);
        let told = tell(core, outcome);
        let kept = claim_status::keep(Arc::clone(&driver));
        let served = keep_serving(&root, Arc::clone(&driver));
        let followed = follow_where_admitted(&driver);
        let forgotten = forgotten::keep(&driver);
        tokio::select! {
            never = served => never,
            never = followed => never,
            never = forgotten => never,
            never = looked => never,
            never = told => never,
            never = kept => never,
        }
    }
}

/// Watches allocated claims where something depends on them.
async fn follow_where_admitted(driver: &ClaimDriver) -> Infallible {
    match driver.core.with(|agent| agent.node().admission).await {
        Some(Admission::Off) | None => std::future::pending().await,
        Some(Admission::Warn | Admission::Enforce) => allocated::follow(driver).await,
    }
}

/// Serves again and again: the kubelet may be installed later, and its directories made anew.
async fn keep_serving(root: &std::path::Path, driver: Arc<ClaimDriver>) -> Infallible {
    let mut said = String::new();
    loop {
        let Err(error) = serve(root, DRIVER, Arc::clone(&driver)).await;
        let error = error.to_string();
        let _before = driver.registration.send_replace(Err(error.clone()));
        if said != error {
            tracing::warn!(error, root = %root.display(), "the kubelet is not served");
            said = error;
        }
        sleep(RETRY).await;
    }
}

/// Keeps the devices' health as the uplinks are.
async fn look_after(driver: &ClaimDriver) -> Infallible {
    loop {
        if let Some(states) = driver.core.with(|agent| agent.node().devices()).await {
            let health =
                |DeviceState { device, fault }| DeviceHealth { pool: driver.node.clone(), device, fault };
            let now: Vec<_> = states.into_iter().map(health).collect();
            driver.health.send_if_modified(|known| {
                let differs = *known != now;
                known.clone_from(&now);
                differs
            });
        }
        sleep(LOOK).await;
    }
}

/// Has the status say what the kubelet says of the registration.
async fn tell(core: Core, mut outcome: watch::Receiver<Result<(), String>>) -> Infallible {
    loop {
        let remark = match &*outcome.borrow_and_update() {
            Ok(()) => {
                tracing::info!(driver = DRIVER, "registered by the kubelet");
                None
            }
            Err(why) => Some(format!("kubernetes: driver {DRIVER} is not registered at the kubelet: {why}")),
        };
        core.remark(WHO, remark).await;
        if outcome.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}
