//! The messages and services that `build.rs` has made of `proto`.
#![allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::expect_used,
    clippy::semicolon_if_nothing_returned,
    reason = "generated code"
)]

/// The service.
pub mod v1 {
    tonic::include_proto!("shunt.cni.v1");
}

/// The draft of CNI's second version.
pub mod draft {
    tonic::include_proto!("cni");
}
