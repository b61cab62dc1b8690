//! The package for distributions with RPM.

use anyhow::{Context, Result};
use rpm::{BuildConfig, CompressionType, Dependency, FileOptions, PackageBuilder, Scriptlet};

use super::about::{CONFIGURATION, DESCRIPTION, LICENSE, MAINTAINER, PACKAGE, SUMMARY};
use super::files::{Files, ZSH_OF_OTHERS};
use crate::contents::Entry;
use crate::origin::Origin;
use crate::program::Architecture;

/// The packager's count of packages of one version.
const RELEASE: &str = "1";

const SHELL: &str = "/bin/sh";
const POST: &str = include_str!("../../package/rpm/post");
const PREUN: &str = include_str!("../../package/rpm/preun");
const POSTUN: &str = include_str!("../../package/rpm/postun");

pub(super) fn file_name(version: &str, architecture: Architecture) -> String {
    format!("{PACKAGE}-{version}-{RELEASE}.{}.rpm", processor(architecture))
}

fn processor(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Amd64 => "x86_64",
        Architecture::Arm64 => "aarch64",
    }
}

/// Directories that are there before any package but the distribution's first.
const OF_EVERY_NODE: [&str; 12] = [
    "etc",
    "opt",
    "usr",
    "usr/lib",
    "usr/lib/systemd",
    "usr/lib/systemd/system",
    "usr/libexec",
    "usr/sbin",
    "usr/share",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/man/man8",
];

/// Packs the files and what rpm is told about them, in the format that every release of it in use reads.
///
/// # Errors
/// A file is none that rpm knows.
pub(super) fn pack(files: &Files, version: &str, origin: &Origin) -> Result<Vec<u8>> {
    let date = u32::try_from(origin.seconds).context("the commit's time is beyond the year 2106")?;
    let config = BuildConfig::v4().compression(CompressionType::Gzip).source_date(date);
    let mut package = PackageBuilder::new(PACKAGE, version, LICENSE, processor(files.architecture), SUMMARY);
    package
        .using_config(config)
        .release(RELEASE)
        .description(DESCRIPTION)
        .packager(MAINTAINER)
        .build_host("localhost")
        .requires(Dependency::script_post(SHELL))
        .requires(Dependency::script_preun(SHELL))
        .post_install_script(script(POST))
        .pre_uninstall_script(script(PREUN))
        .post_uninstall_script(script(POSTUN));
    for (path, entry) in files.managed(ZSH_OF_OTHERS).entries() {
        add(&mut package, path, entry).with_context(|| format!("pack {path}"))?;
    }
    let mut bytes = Vec::new();
    package.build().context("make the package")?.write(&mut bytes).context("write the package")?;
    Ok(bytes)
}

fn script(text: &str) -> Scriptlet {
    Scriptlet::new(text).prog(vec![SHELL])
}

fn add(package: &mut PackageBuilder, path: &str, entry: &Entry) -> Result<()> {
    let place = format!("/{path}");
    let permissions = |mode: u32| u16::try_from(mode).context("a mode");
    match entry {
        Entry::Directory { mode } if is_own(path) => {
            package.with_dir_entry(FileOptions::dir(place).permissions(permissions(*mode)?))?;
        }
        // The distribution's.
        Entry::Directory { .. } => {}
        Entry::File { mode, bytes } => {
            let mut options = FileOptions::new(place).permissions(permissions(*mode)?);
            if path == CONFIGURATION {
                options = options.config().noreplace();
            } else if path.contains("/LICENSE") {
                options = options.license();
            } else if path.starts_with("usr/share/man/") {
                options = options.doc();
            }
            package.with_file_contents(bytes.clone(), options)?;
        }
        Entry::Link { target } => {
            package.with_symlink(FileOptions::symlink(place, *target))?;
        }
    }
    Ok(())
}

/// Whether a directory goes with the package, if nobody else has it. A minimal node lacks those of shells and of NetworkManager, too.
fn is_own(path: &str) -> bool {
    !OF_EVERY_NODE.contains(&path)
}
