//! An OCI image layout as one tar file (image-layout.md): `oci-layout`, `index.json`, and the blobs under their digests.

use anyhow::{Context, Result};
use oci_spec::image::{
    ANNOTATION_REF_NAME, ImageIndexBuilder, MediaType, OciLayoutBuilder, Os, PlatformBuilder, SCHEMA_VERSION,
};
use tar::{Builder, EntryType};

use crate::blob::Blob;
use crate::layer::header;
use crate::origin::Origin;
use crate::program::Architecture;

/// What containerd and podman read the image's name from; the annotation of the specification is the version alone.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// Packs the blobs, of which the last is the manifest of the one image.
///
/// # Errors
/// There is no manifest.
pub(crate) fn pack(
    blobs: &[Blob],
    reference: &str,
    architecture: Architecture,
    origin: &Origin,
) -> Result<Vec<u8>> {
    let manifest = blobs.last().context("an image has a manifest")?;
    let mut descriptor = manifest.descriptor()?;
    let platform = PlatformBuilder::default().os(Os::Linux).architecture(architecture.of_image()).build()?;
    descriptor.set_platform(Some(platform));
    let names = [(ANNOTATION_REF_NAME, origin.version.as_str()), (CONTAINERD_NAME, reference)];
    let names = names.map(|(key, value)| (key.to_owned(), value.to_owned()));
    descriptor.set_annotations(Some(names.into_iter().collect()));
    let index = ImageIndexBuilder::default()
        .schema_version(SCHEMA_VERSION)
        .media_type(MediaType::ImageIndex)
        .manifests(vec![descriptor])
        .build()?;
    let index = Blob::json(MediaType::ImageIndex, &index)?;
    let layout = OciLayoutBuilder::default().image_layout_version("1.0.0").build()?;
    let layout = Blob::json(MediaType::Other(String::new()), &layout)?;

    let mut archive = Builder::new(Vec::new());
    let mut add = |path: &str, entry: EntryType, bytes: &[u8]| -> Result<()> {
        let mut header = header(origin);
        header.set_entry_type(entry);
        header.set_mode(if entry.is_dir() { 0o755 } else { 0o644 });
        header.set_size(u64::try_from(bytes.len()).context("a blob's size")?);
        archive.append_data(&mut header, path, bytes).with_context(|| format!("pack {path}"))
    };
    add("blobs/", EntryType::Directory, &[])?;
    add("blobs/sha256/", EntryType::Directory, &[])?;
    for blob in blobs {
        add(&format!("blobs/sha256/{}", blob.digest()), EntryType::Regular, &blob.bytes)?;
    }
    add("index.json", EntryType::Regular, &index.bytes)?;
    add("oci-layout", EntryType::Regular, &layout.bytes)?;
    archive.into_inner().context("end the archive")
}
