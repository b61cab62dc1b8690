//! The package for Debian: `ar` around two tar files (deb(5)).

use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::about::{CONFIGURATION, DESCRIPTION, MAINTAINER, PACKAGE, SUMMARY};
use super::files::{Files, ZSH_OF_DEBIAN};
use crate::compress::gzip;
use crate::contents::{Contents, Entry};
use crate::layer;
use crate::origin::Origin;
use crate::program::Architecture;

/// The maintainer's scripts.
const SCRIPTS: [(&str, &str); 3] = [
    ("postinst", include_str!("../../package/deb/postinst")),
    ("prerm", include_str!("../../package/deb/prerm")),
    ("postrm", include_str!("../../package/deb/postrm")),
];

pub(super) fn file_name(version: &str, architecture: Architecture) -> String {
    format!("{PACKAGE}_{version}_{architecture}.deb")
}

/// Packs the files and what dpkg is told about them.
///
/// # Errors
/// A path does not fit into a tar file.
pub(super) fn pack(files: &Files, version: &str, origin: &Origin) -> Result<Vec<u8>> {
    let contents = files.managed(ZSH_OF_DEBIAN);
    let mut about = Contents::default();
    about.add("control", Entry::text(&control(&contents, version, files.architecture)));
    about.add("conffiles", Entry::text(&format!("/{CONFIGURATION}\n")));
    for (name, script) in SCRIPTS {
        about.add(name, Entry::File { mode: 0o755, bytes: script.into() });
    }
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&layer::archive(&about, origin)?)?),
        ("data.tar.gz", gzip(&layer::archive(&contents, origin)?)?),
    ];
    let mut archive = ar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let size = u64::try_from(bytes.len()).context("a member's size")?;
        let mut header = ar::Header::new(name.into(), size);
        header.set_mode(0o100_644);
        header.set_mtime(origin.seconds);
        archive.append(&header, bytes.as_slice()).with_context(|| format!("pack {name}"))?;
    }
    archive.into_inner().context("end the archive")
}

fn control(contents: &Contents, version: &str, architecture: Architecture) -> String {
    let kibibytes = contents.size().div_ceil(1024);
    let mut control = String::new();
    // The plugins take over host ports and masquerading when the package is removed.
    for (field, value) in [
        ("Package", PACKAGE),
        ("Version", version),
        ("Architecture", &architecture.to_string()),
        ("Maintainer", MAINTAINER),
        ("Installed-Size", &kibibytes.to_string()),
        ("Pre-Depends", "init-system-helpers (>= 1.54~)"),
        ("Suggests", "containernetworking-plugins"),
        ("Section", "net"),
        ("Priority", "optional"),
        ("Description", SUMMARY),
    ] {
        // A text has no end but memory's.
        let _written = writeln!(control, "{field}: {value}");
    }
    let _written = writeln!(control, " {DESCRIPTION}");
    control
}
