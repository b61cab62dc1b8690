//! The image: layer, configuration and manifest, and the two files that are left.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use oci_spec::image::{
    ANNOTATION_CREATED, ANNOTATION_DESCRIPTION, ANNOTATION_LICENSES, ANNOTATION_REVISION, ANNOTATION_TITLE,
    ANNOTATION_VENDOR, ANNOTATION_VERSION, ConfigBuilder, History, HistoryBuilder, ImageConfiguration,
    ImageConfigurationBuilder, ImageManifestBuilder, MediaType, Os, RootFsBuilder, SCHEMA_VERSION,
};

use crate::archive;
use crate::blob::Blob;
use crate::contents::{AGENT, Contents};
use crate::layer::{self, Layer};
use crate::materials;
use crate::origin::Origin;
use crate::program::Architecture;

/// The image's name, without its version.
pub const NAME: &str = "localhost/shunt";

/// What an image is made of.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// The directory of the statically linked programs `shunt` and `shunt-agent`.
    pub programs: &'a Path,
    /// The checkout: its licences, and the manifests of what is linked in.
    pub checkout: &'a Path,
    /// Which version of it.
    pub origin: Origin,
}

/// What was made.
#[derive(Debug)]
pub struct Made {
    /// The image as a tar file of an OCI layout.
    pub archive: PathBuf,
    /// What is linked in, as CycloneDX 1.5 in JSON.
    pub materials: PathBuf,
    /// The digest of the image's manifest, `sha256:…`.
    pub digest: String,
    /// The processor that it is for.
    pub architecture: Architecture,
    /// Its name and version.
    pub reference: String,
}

impl Image<'_> {
    /// Makes the archive and the bill of materials in `out`.
    ///
    /// # Errors
    /// A program is missing or is linked dynamically; `cargo metadata` fails; a file cannot be written.
    pub fn make(&self, out: &Path) -> Result<Made> {
        let (contents, architecture) = Contents::read(self.programs, self.checkout)?;
        let layer = layer::pack(&contents, &self.origin)?;
        let config = Blob::json(MediaType::ImageConfig, &self.configuration(&layer, architecture)?)?;
        let manifest = ImageManifestBuilder::default()
            .schema_version(SCHEMA_VERSION)
            .media_type(MediaType::ImageManifest)
            .config(config.descriptor()?)
            .layers(vec![layer.blob.descriptor()?])
            .annotations(self.labels())
            .build()?;
        let manifest = Blob::json(MediaType::ImageManifest, &manifest)?;
        let digest = format!("sha256:{}", manifest.digest());
        let reference = format!("{NAME}:{}", self.origin.version);
        let bytes = archive::pack(&[layer.blob, config, manifest], &reference, architecture, &self.origin)?;

        fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
        let archive = out.join(format!("shunt-{architecture}.oci.tar"));
        let materials = out.join(format!("shunt-{architecture}.cdx.json"));
        write(&archive, &bytes)?;
        write(&materials, &materials::list(self.checkout, architecture, &self.origin)?)?;
        Ok(Made { archive, materials, digest, architecture, reference })
    }

    fn configuration(&self, layer: &Layer, architecture: Architecture) -> Result<ImageConfiguration> {
        let process = ConfigBuilder::default()
            .env(vec!["PATH=/usr/bin".to_owned()])
            .entrypoint(vec![format!("/{AGENT}")])
            .cmd(vec!["run".to_owned()])
            .working_dir("/".to_owned())
            .labels(self.labels())
            .build()?;
        let root = RootFsBuilder::default().typ("layers").diff_ids(vec![layer.diff_id.clone()]).build()?;
        Ok(ImageConfigurationBuilder::default()
            .created(self.origin.created())
            .architecture(architecture.of_image())
            .os(Os::Linux)
            .config(process)
            .rootfs(root)
            .history(vec![self.history()?])
            .build()?)
    }

    fn history(&self) -> Result<History> {
        let history =
            HistoryBuilder::default().created(self.origin.created()).created_by("cargo xtask image");
        Ok(history.build()?)
    }

    /// The labels of the configuration, and the manifest's annotations (annotations.md of the image specification).
    fn labels(&self) -> HashMap<String, String> {
        let said = [
            (ANNOTATION_TITLE, "shunt".to_owned()),
            (
                ANNOTATION_DESCRIPTION,
                "CNI plugin and node agent that forward container traffic in eBPF".to_owned(),
            ),
            (ANNOTATION_VENDOR, "shunt".to_owned()),
            (ANNOTATION_LICENSES, env!("CARGO_PKG_LICENSE").to_owned()),
            (ANNOTATION_VERSION, self.origin.version.clone()),
            (ANNOTATION_CREATED, self.origin.created()),
        ];
        let revision = self.origin.revision.clone().map(|revision| (ANNOTATION_REVISION, revision));
        said.into_iter().chain(revision).map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
