//! What a driver does for a kubelet.

use tokio::sync::watch;

/// A claim as the kubelet names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: a claim of the same name may be another one.
    pub uid: String,
}

/// A device that a claim has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The claim's request.
    pub request: String,
    /// The pool, by its name in the `ResourceSlice`.
    pub pool: String,
    /// The device, by its name there.
    pub device: String,
}

/// Whether a device can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceHealth {
    /// The pool, by its name in the `ResourceSlice`.
    pub pool: String,
    /// The device, by its name there.
    pub device: String,
    /// What is wrong with it; none while it is healthy.
    pub fault: Option<String>,
}

/// A driver. Its methods may be called for several claims at a time, and again for the same claim.
pub trait Driver: Send + Sync + 'static {
    /// Prepares a claim; one that is prepared already stays so.
    ///
    /// # Errors
    /// Why not, in one line for the pod's events.
    fn prepare(&self, claim: ClaimName) -> impl Future<Output = Result<Vec<Device>, String>> + Send;

    /// Takes back what a preparation did; one that was never prepared is no error.
    ///
    /// # Errors
    /// Why not, in one line. The kubelet asks again.
    fn unprepare(&self, claim: ClaimName) -> impl Future<Output = Result<(), String>> + Send;

    /// The health of all devices, as it changes.
    fn health(&self) -> watch::Receiver<Vec<DeviceHealth>>;

    /// The kubelet has registered the driver, or says why it has not.
    fn registered(&self, outcome: Result<(), String>);
}
