//! The image's one layer: its files as a tar file that is compressed.

use anyhow::{Context, Result};
use oci_spec::image::MediaType;
use tar::{Builder, EntryType, Header};

use crate::blob::{Blob, sha256};
use crate::compress::gzip;
use crate::contents::{Contents, Entry};
use crate::origin::Origin;

/// A layer, and the digest of what it is when it is not compressed.
pub(crate) struct Layer {
    pub(crate) blob: Blob,
    pub(crate) diff_id: String,
}

/// Packs the files as the layer of an image.
///
/// # Errors
/// A path does not fit into a tar file.
pub(crate) fn pack(contents: &Contents, origin: &Origin) -> Result<Layer> {
    let plain = archive(contents, origin)?;
    let diff_id = format!("sha256:{}", sha256(&plain));
    let bytes = gzip(&plain)?;
    Ok(Layer { blob: Blob { media_type: MediaType::ImageLayerGzip, bytes }, diff_id })
}

/// Packs the files into a tar file. Their owner is root, their time the origin's.
///
/// # Errors
/// A path does not fit into a tar file.
pub(crate) fn archive(contents: &Contents, origin: &Origin) -> Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for (path, entry) in contents.entries() {
        let mut header = header(origin);
        let packed = match entry {
            Entry::Directory { mode } => {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(*mode);
                archive.append_data(&mut header, format!("{path}/"), [].as_slice())
            }
            Entry::File { mode, bytes } => {
                header.set_entry_type(EntryType::Regular);
                header.set_mode(*mode);
                header.set_size(u64::try_from(bytes.len()).context("a file's size")?);
                archive.append_data(&mut header, path, bytes.as_slice())
            }
            Entry::Link { target } => {
                header.set_entry_type(EntryType::Symlink);
                header.set_mode(0o777);
                archive.append_link(&mut header, path, target)
            }
        };
        packed.with_context(|| format!("pack {path}"))?;
    }
    archive.into_inner().context("end the archive")
}

/// A header with nothing of the building machine's in it.
pub(crate) fn header(origin: &Origin) -> Header {
    let mut header = Header::new_ustar();
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(origin.seconds);
    header.set_size(0);
    header
}
