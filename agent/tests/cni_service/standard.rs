//! gRPC's own services: health and reflection.

use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::client::connect;
use crate::world::World;

#[test]
fn the_service_says_that_it_serves_and_what() {
    let world = World::start();
    let client = world.client();
    client.runtime.block_on(async {
        let origin = || "http://localhost".parse().unwrap();
        let mut health = HealthClient::with_origin(connect(&world.socket()).await, origin());
        for service in ["", "shunt.cni.v1.CniService", "cni.CNI"] {
            let answer = health.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap();
            assert_eq!(answer.into_inner().status(), ServingStatus::Serving, "{service}");
        }
        let mut reflection = ServerReflectionClient::with_origin(connect(&world.socket()).await, origin());
        let request = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let asked = tokio_stream::once(request);
        let mut answers = reflection.server_reflection_info(asked).await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
        let MessageResponse::ListServicesResponse(services) = answer else { panic!("{answer:?}") };
        let names: Vec<_> = services.service.into_iter().map(|service| service.name).collect();
        for service in ["shunt.cni.v1.CniService", "cni.CNI"] {
            assert!(names.contains(&service.to_owned()), "{names:?}");
        }
    });
}
