//! What a cluster gets: the container image of shunt, made without a container engine, and the manifests that the chart renders. What a node
//! gets: packages, made without a distribution's tools.
//!
//! In: the statically linked programs that `cargo xtask build` leaves, and the checkout's licences and `cargo metadata`. Out: an OCI image
//! layout in one tar file and a bill of materials (CycloneDX) beside it; a `.deb`, an `.rpm` and a tar file. The same programs give the same
//! bytes: no clock, no user, no file mode of the building machine is in them.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test"))]

mod archive;
mod blob;
mod chart;
mod compress;
mod contents;
mod image;
mod layer;
mod materials;
mod origin;
mod package;
mod program;

pub use chart::{Chart, MANIFESTS, Manifest};
pub use image::{Image, Made, NAME};
pub use origin::Origin;
pub use package::{CONFIGURATION, PACKAGE, PLUGIN, Package, Packages};
pub use program::Architecture;
