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

/// How a plugin makes itself known.
pub mod registration {
    tonic::include_proto!("pluginregistration");
}

/// Claims.
pub mod dra {
    tonic::include_proto!("k8s.io.kubelet.pkg.apis.dra.v1");
}

/// Health.
pub mod v1 {
    tonic::include_proto!("v1");
}

/// Health, for kubelets before 1.37.
pub mod v1alpha1 {
    tonic::include_proto!("v1alpha1");
}
