//! A kernel to boot: Debian's cloud kernel of a series, downloaded once and kept unpacked in the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::process;
use crate::setup::{apt, cache};

/// The kernels on the ladder that is not the developer's own: filters on clsact, and tcx links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Series {
    #[value(name = "6.1")]
    V6_1,
    #[value(name = "6.12")]
    V6_12,
}

impl Series {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
        }
    }
}

/// An unpacked kernel.
pub(super) struct Kernel {
    pub(super) image: PathBuf,
    /// Its `/lib/modules/RELEASE`.
    pub(super) modules: PathBuf,
}

impl Kernel {
    /// As `uname -r` says.
    pub(super) fn release(&self) -> String {
        self.modules.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The newest one that apt knows; when that cannot be had, the newest one that is in the cache.
pub(super) fn find_or_download(series: Series) -> Result<Kernel> {
    let _guard = cache::lock()?;
    let directory = cache::directory()?.join("kernels");
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let pattern = format!("^linux-image-{}[.]", series.name());
    let cached = newest(series, names(&directory)?);
    let search = || newest(series, apt::search(&pattern).unwrap_or_default());
    // Without a cache it is worth the time to look whether apt's lists are only missing or old.
    let listed = match search() {
        None if cached.is_none() => apt::refresh().ok().and_then(|()| search()),
        listed => listed,
    };
    if let Some(package) = &listed {
        let unpacked = directory.join(package);
        if unpacked.is_dir() {
            return open(&unpacked);
        }
        eprintln!("vm: downloading {package}");
        match download(package, &unpacked) {
            Ok(()) => return open(&unpacked),
            Err(error) => eprintln!("vm: {error:#}"),
        }
    }
    process::check_interrupted()?;
    match cached {
        Some(package) => {
            eprintln!("vm: taking {package}, which is in the cache");
            open(&directory.join(package))
        }
        None => bail!(
            "no Linux {} to boot: apt has none to download (Debian 12's sources have both; is there a network?), \
             and {} has none either",
            series.name(),
            directory.display()
        ),
    }
}

fn names(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
}

/// Among packages, or folders named after them, the series' cloud kernel with the greatest numbers.
fn newest(series: Series, packages: Vec<String>) -> Option<String> {
    let prefix = format!("linux-image-{}.", series.name());
    let kernels = packages
        .into_iter()
        .filter(|package| package.starts_with(&prefix) && package.ends_with("-cloud-amd64"));
    kernels.max_by_key(|package| numbers(package))
}

fn numbers(text: &str) -> Vec<u32> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

/// Downloads, unpacks, and gives the folder its name only when everything is in it.
fn download(package: &str, unpacked: &Path) -> Result<()> {
    let unfinished = unpacked.with_file_name(format!("{package}.new"));
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).with_context(|| format!("cannot remove {}", unfinished.display()))?;
    }
    fs::create_dir(&unfinished).with_context(|| format!("cannot create {}", unfinished.display()))?;
    apt::download(&[package.to_owned()], &unfinished)?;
    let archive = names(&unfinished)?.into_iter().find(|name| name.ends_with(".deb"));
    let archive = unfinished.join(archive.with_context(|| format!("apt has downloaded no {package}"))?);
    process::quietly(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&unfinished))?;
    fs::remove_file(&archive).with_context(|| format!("cannot remove {}", archive.display()))?;
    index(&unfinished.join("lib/modules"))?;
    unsign(&unfinished)?;
    fs::rename(&unfinished, unpacked).with_context(|| format!("cannot write {}", unpacked.display()))
}

/// The package is not installed, so nobody has written `modules.dep`; and compressed modules are for kmod only.
fn index(modules: &Path) -> Result<()> {
    let release = only_entry(modules)?;
    let unpack = ["find", ".", "-name", "*.ko.xz", "-exec", "busybox", "unxz", "{}", "+"];
    process::quietly(Command::new("busybox").args(unpack).current_dir(modules))?;
    let base = modules.parent().and_then(Path::parent).context("modules lie below lib")?;
    process::quietly(Command::new("busybox").args(["depmod", "-b"]).arg(base).arg(release))
}

/// A signature takes an emulated processor half a second for each module to verify, and what has none these kernels load as well.
/// Whoever strips a module loses it.
fn unsign(unpacked: &Path) -> Result<()> {
    let strip = ["lib/modules", "-name", "*.ko", "-exec", "strip", "--strip-debug", "{}", "+"];
    process::quietly(Command::new("find").args(strip).current_dir(unpacked))?;
    let done = unpacked.join(UNSIGNED);
    fs::write(&done, "").with_context(|| format!("cannot write {}", done.display()))
}

/// Tells a kernel whose modules have been taken care of from one that was unpacked before that was done.
const UNSIGNED: &str = "unsigned";

fn open(unpacked: &Path) -> Result<Kernel> {
    if !unpacked.join(UNSIGNED).exists() {
        unsign(unpacked)?;
    }
    let modules = unpacked.join("lib/modules");
    let release = only_entry(&modules)?;
    let image = unpacked.join("boot").join(format!("vmlinuz-{release}"));
    Ok(Kernel { image, modules: modules.join(release) })
}

fn only_entry(directory: &Path) -> Result<String> {
    match names(directory)?.as_slice() {
        [name] => Ok(name.clone()),
        several => bail!("{} should have one entry, and has {several:?}", directory.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_the_one_with_the_greatest_number_not_the_last_letter() {
        let packages = [
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.1.0-56-cloud-amd64",
            "linux-image-6.1.0-57-cloud-amd64-dbg",
            "linux-image-6.1.0-58-cloud-amd64-unsigned",
            "linux-image-6.1.0-59-cloud-amd64.new",
            "linux-image-6.12.117+deb12-cloud-amd64",
        ];
        let newest = |series| newest(series, packages.map(str::to_owned).to_vec()).unwrap();
        assert_eq!(newest(Series::V6_1), "linux-image-6.1.0-56-cloud-amd64");
        assert_eq!(newest(Series::V6_12), "linux-image-6.12.117+deb12-cloud-amd64");
    }
}
