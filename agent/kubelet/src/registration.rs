//! The service on the socket in the kubelet's registry: who the driver is and where it is served.

use std::sync::Arc;

use tonic::{Request, Response, Status, async_trait};

use crate::driver::Driver;
use crate::proto::registration::registration_server::Registration;
use crate::proto::registration::{InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse};

/// What kind of plugin a driver is.
const KIND: &str = "DRAPlugin";

/// The services of the driver's socket, as kubelets name them.
const SERVICES: [&str; 3] = ["v1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"];

/// The driver's registration.
pub(crate) struct Registrar<D> {
    pub(crate) name: String,
    /// The path of the driver's socket.
    pub(crate) endpoint: String,
    pub(crate) driver: Arc<D>,
}

#[async_trait]
impl<D: Driver> Registration for Registrar<D> {
    async fn get_info(&self, _: Request<InfoRequest>) -> Result<Response<PluginInfo>, Status> {
        Ok(Response::new(PluginInfo {
            r#type: KIND.to_owned(),
            name: self.name.clone(),
            endpoint: self.endpoint.clone(),
            supported_versions: SERVICES.map(str::to_owned).into(),
        }))
    }

    async fn notify_registration_status(
        &self,
        status: Request<RegistrationStatus>,
    ) -> Result<Response<RegistrationStatusResponse>, Status> {
        let RegistrationStatus { plugin_registered, error } = status.into_inner();
        self.driver.registered(if plugin_registered { Ok(()) } else { Err(error) });
        Ok(Response::new(RegistrationStatusResponse {}))
    }
}
