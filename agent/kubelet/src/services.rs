//! Which service a call is for: by the first part of its path, `/PACKAGE.SERVICE/METHOD`.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, Response};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service as _};

use crate::driver::Driver;
use crate::health::Health;
use crate::plugin::Plugin;
use crate::proto::dra::dra_plugin_server::DraPluginServer;
use crate::proto::registration::registration_server::RegistrationServer;
use crate::proto::v1::dra_resource_health_server as v1;
use crate::proto::v1alpha1::dra_resource_health_server as v1alpha1;
use crate::registration::Registrar;

/// Bytes of a call's message. One with 256 claims, their names as long as they may be, has 180,000.
const MAX_MESSAGE: usize = 256 << 10;

/// What a socket serves.
pub(crate) trait Services: Clone + Send + Sync + 'static {
    /// Answers a call.
    fn call(&self, request: Request<Incoming>) -> BoxFuture<Response<Body>, Infallible>;
}

/// The registration, on the socket in the kubelet's registry.
pub(crate) struct Registry<D>(RegistrationServer<Registrar<D>>);

impl<D: Driver> Registry<D> {
    pub(crate) fn new(registrar: Registrar<D>) -> Self {
        Self(RegistrationServer::new(registrar).max_decoding_message_size(MAX_MESSAGE))
    }
}

impl<D: Driver> Services for Registry<D> {
    fn call(&self, request: Request<Incoming>) -> BoxFuture<Response<Body>, Infallible> {
        self.0.clone().call(request)
    }
}

/// Claims and health, on the driver's socket.
pub(crate) struct Devices<D> {
    claims: DraPluginServer<Plugin<D>>,
    health: v1::DraResourceHealthServer<Health<D>>,
    older_health: v1alpha1::DraResourceHealthServer<Health<D>>,
}

impl<D: Driver> Devices<D> {
    pub(crate) fn new(driver: &Arc<D>) -> Self {
        let health = Arc::new(Health(Arc::clone(driver)));
        Self {
            claims: DraPluginServer::new(Plugin(Arc::clone(driver))).max_decoding_message_size(MAX_MESSAGE),
            health: v1::DraResourceHealthServer::from_arc(Arc::clone(&health))
                .max_decoding_message_size(MAX_MESSAGE),
            older_health: v1alpha1::DraResourceHealthServer::from_arc(health)
                .max_decoding_message_size(MAX_MESSAGE),
        }
    }
}

impl<D: Driver> Services for Devices<D> {
    fn call(&self, request: Request<Incoming>) -> BoxFuture<Response<Body>, Infallible> {
        match request.uri().path().split('/').nth(1) {
            Some(v1::SERVICE_NAME) => self.health.clone().call(request),
            Some(v1alpha1::SERVICE_NAME) => self.older_health.clone().call(request),
            _ => self.claims.clone().call(request),
        }
    }
}

impl<D> Clone for Registry<D> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<D> Clone for Devices<D> {
    fn clone(&self) -> Self {
        let Self { claims, health, older_health } = self;
        Self { claims: claims.clone(), health: health.clone(), older_health: older_health.clone() }
    }
}
