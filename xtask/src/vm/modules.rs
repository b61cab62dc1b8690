//! What the guest must load before it has a root: from `modules.dep`, in the order in which they depend on each other.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The way to the host's root and the layer over it. What is built into a kernel has no file.
const NEEDED: [&str; 3] = ["virtio_pci", "virtiofs", "overlay"];

/// Paths of the modules below `directory` (a kernel's `/lib/modules/RELEASE`), dependencies first.
pub(super) fn for_root(directory: &Path) -> Result<Vec<PathBuf>> {
    let read = |name: &str| {
        let path = directory.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let ordered = in_order(&NEEDED, &read("modules.dep")?, &read("modules.builtin")?)?;
    Ok(ordered.into_iter().map(|path| directory.join(path)).collect())
}

/// A line of `modules.dep` is `PATH: PATH…`: a module, and all that it needs, the deepest last.
fn in_order(needed: &[&str], dependencies: &str, built_in: &str) -> Result<Vec<String>> {
    let mut ordered: Vec<String> = Vec::new();
    for name in needed {
        if built_in.lines().any(|path| module_name(path) == *name) {
            continue;
        }
        let line = dependencies.lines().filter_map(|line| line.split_once(':'));
        let Some((path, below)) = line.into_iter().find(|(path, _)| module_name(path) == *name) else {
            bail!("the kernel has no module {name}");
        };
        for path in below.split_whitespace().rev().chain([path]) {
            if !ordered.iter().any(|present| present == path) {
                ordered.push(path.to_owned());
            }
        }
    }
    Ok(ordered)
}

/// `kernel/fs/fuse/virtiofs.ko` is `virtiofs`; `-` and `_` are the same in a module's name.
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_comes_before_it_and_once() {
        let dependencies = "a/virtio-ring.ko:\n\
            a/virtio_pci.ko: a/virtio.ko a/virtio-ring.ko\n\
            fs/virtiofs.ko: fs/fuse.ko a/virtio.ko a/virtio-ring.ko\n";
        let ordered = in_order(&["virtio_pci", "virtiofs"], dependencies, "").unwrap();
        let expected = ["a/virtio-ring.ko", "a/virtio.ko", "a/virtio_pci.ko", "fs/fuse.ko", "fs/virtiofs.ko"];
        assert_eq!(ordered, expected);
    }

    #[test]
    fn what_is_built_in_needs_no_file_and_what_is_nowhere_is_an_error() {
        assert!(in_order(&["overlay"], "", "kernel/fs/overlayfs/overlay.ko\n").unwrap().is_empty());
        let error = in_order(&["overlay"], "", "").unwrap_err();
        assert_eq!(error.to_string(), "the kernel has no module overlay");
    }
}
