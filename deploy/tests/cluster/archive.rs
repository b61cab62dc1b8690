//! The image's archive, read as its specification says.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use cyclonedx_bom::models::bom::Bom;
use cyclonedx_bom::validation::Validate as _;
use flate2::read::GzDecoder;
use oci_spec::image::{Descriptor, ImageConfiguration, ImageIndex, ImageManifest, MediaType, OciLayout};
use sha2::{Digest as _, Sha256};
use shunt_deploy::{Image, Made, Origin};
use shunt_lab::Binaries;

use crate::kept::checkout;

/// Makes the image of the built programs, in a directory with copies of them that are as new as the call.
fn make(directory: &Path) -> Made {
    let programs = directory.join("programs");
    fs::create_dir(&programs).unwrap();
    Binaries::find().unwrap().copy_to(&programs).unwrap();
    let origin =
        Origin { version: "1.2.3".to_owned(), revision: Some("abc".to_owned()), seconds: 1_700_000_000 };
    Image { programs: &programs, checkout: checkout(), origin }.make(&directory.join("out")).unwrap()
}

#[test]
fn the_same_programs_give_the_same_image() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let made = [&one, &two].map(|directory| make(directory.path()));
    assert_eq!(made[0].digest, made[1].digest);
    let read = |path: &Path| fs::read(path).unwrap();
    assert!(read(&made[0].archive) == read(&made[1].archive), "the archives differ");
    assert!(read(&made[0].materials) == read(&made[1].materials), "the bills of materials differ");
}

/// The files of an archive.
pub(crate) fn files(archive: impl Read) -> BTreeMap<String, (tar::Header, Vec<u8>)> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.insert(path, (entry.header().clone(), bytes));
    }
    files
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Layout(BTreeMap<String, (tar::Header, Vec<u8>)>);

impl Layout {
    fn file(&self, path: &str) -> &[u8] {
        &self.0.get(path).unwrap_or_else(|| panic!("no {path} in {:?}", self.0.keys())).1
    }

    /// The blob that a descriptor names, with the digest and the size that it says.
    fn blob(&self, descriptor: &Descriptor, media_type: MediaType) -> &[u8] {
        assert_eq!(*descriptor.media_type(), media_type);
        let digest = descriptor.as_digest_sha256().unwrap();
        let bytes = self.file(&format!("blobs/sha256/{digest}"));
        assert_eq!((hex(bytes).as_str(), bytes.len()), (digest, usize::try_from(descriptor.size()).unwrap()));
        bytes
    }
}

#[test]
fn the_archive_is_an_image_layout_whose_digests_hold() {
    let directory = tempfile::tempdir().unwrap();
    let made = make(directory.path());
    assert_eq!(made.reference, "localhost/shunt:1.2.3");
    let layout = Layout(files(File::open(&made.archive).unwrap()));
    assert_eq!(OciLayout::from_reader(layout.file("oci-layout")).unwrap().image_layout_version(), "1.0.0");
    let index = ImageIndex::from_reader(layout.file("index.json")).unwrap();
    let [descriptor] = index.manifests().as_slice() else { panic!("{index:?}") };
    assert_eq!(made.digest, descriptor.digest().to_string());
    let named = descriptor.annotations().as_ref().unwrap();
    assert_eq!(named["org.opencontainers.image.ref.name"], "1.2.3");
    assert_eq!(named["io.containerd.image.name"], "localhost/shunt:1.2.3");

    let manifest = ImageManifest::from_reader(layout.blob(descriptor, MediaType::ImageManifest)).unwrap();
    let config = layout.blob(manifest.config(), MediaType::ImageConfig);
    let config = ImageConfiguration::from_reader(config).unwrap();
    assert_eq!(config.architecture(), descriptor.platform().as_ref().unwrap().architecture());
    let labels = config.labels_of_config().unwrap();
    assert_eq!(labels["org.opencontainers.image.version"], "1.2.3");
    assert_eq!(labels["org.opencontainers.image.revision"], "abc");
    assert_eq!(labels["org.opencontainers.image.created"], "2023-11-14T22:13:20Z");
    assert_eq!(labels["org.opencontainers.image.licenses"], "MIT OR Apache-2.0");

    let [layer] = manifest.layers().as_slice() else { panic!("{manifest:?}") };
    let mut plain = Vec::new();
    GzDecoder::new(layout.blob(layer, MediaType::ImageLayerGzip)).read_to_end(&mut plain).unwrap();
    assert_eq!(*config.rootfs().diff_ids(), [format!("sha256:{}", hex(&plain))]);
    assert_eq!(
        layout.0.values().filter(|(header, _)| header.entry_type().is_file()).count(),
        5,
        "nothing else"
    );

    let contents = files(plain.as_slice());
    for (path, mode) in [("usr/bin/shunt-agent", 0o755), ("usr/bin/shunt", 0o755)] {
        let (header, bytes) = &contents[path];
        assert_eq!((header.mode().unwrap(), header.uid().unwrap()), (mode, 0));
        assert!(*bytes == fs::read(directory.path().join("programs").join(&path[8..])).unwrap(), "{path}");
    }
    let files = contents.iter().filter(|(_, (header, _))| header.entry_type().is_file());
    let names: Vec<_> = files.map(|(path, _)| path.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["shunt", "shunt-agent", "LICENSE", "LICENSE-APACHE", "LICENSE-MIT"]);
    assert_eq!(contents["var/run"].0.link_name().unwrap().unwrap(), Path::new("../run"));
}

#[test]
fn the_bill_lists_what_is_linked_in_and_not_what_builds_and_tests_it() {
    let directory = tempfile::tempdir().unwrap();
    let made = make(directory.path());
    let bom = Bom::parse_from_json(File::open(made.materials).unwrap()).unwrap();
    assert!(bom.validate().passed());
    let components = bom.components.unwrap().0;
    let has = |name: &str| components.iter().any(|component| AsRef::<str>::as_ref(&component.name) == name);
    for linked in ["shunt", "shunt-agent", "aya", "kube", "tokio", "netlink-packet-route"] {
        assert!(has(linked), "{linked} is missing");
    }
    for other in ["proptest", "criterion", "shunt-lab", "shunt-deploy", "cc", "windows-sys"] {
        assert!(!has(other), "{other} is in it");
    }
    let bare: Vec<_> = components.iter().filter(|component| component.licenses.is_none()).collect();
    assert!(bare.is_empty(), "without a licence: {bare:?}");
}
