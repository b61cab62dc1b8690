//! The names in the plugin directory: ours go, and what they replaced comes back under its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The plugin's own file.
pub(crate) const PLUGIN: &str = "shunt";

/// What a replaced plugin is kept as.
pub(crate) const KEPT: &str = "orig";

/// The plugin's copy, until it is whole.
const UNFINISHED_PLUGIN: &str = "shunt.new";

/// What a name ends in until its file is whole.
pub(crate) const UNFINISHED: &str = ".new";

/// The links to the plugin, and the plugin.
#[derive(Debug)]
pub(super) struct PluginNames {
    directory: PathBuf,
    links: Vec<PathBuf>,
    /// What an installation that was interrupted has left.
    unfinished: Vec<PathBuf>,
}

impl PluginNames {
    /// Reads the directory; it may be absent.
    pub(super) fn at(directory: &Path) -> Self {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let is_plugin = |path: &Path| path.file_name().is_some_and(|name| name == UNFINISHED_PLUGIN);
        let ours = paths.filter(|path| is_ours(path) || is_plugin(path));
        let (unfinished, links) =
            ours.partition(|path| path.as_os_str().as_encoded_bytes().ends_with(UNFINISHED.as_bytes()));
        Self { directory: directory.to_path_buf(), links, unfinished }
    }

    /// Puts every name back, and the plugin last. Says what was done.
    pub(super) fn put_back(&self, left: &mut Vec<String>) -> Vec<String> {
        let mut done = Vec::new();
        for path in &self.unfinished {
            note(fs::remove_file(path), path, format!("{} removed", path.display()), &mut done, left);
        }
        for link in &self.links {
            let kept = link.with_extension(KEPT);
            // Renamed over the link: at no moment is the name nobody's.
            let (put, what) = if kept.symlink_metadata().is_ok() {
                (fs::rename(&kept, link), format!("{} put back", link.display()))
            } else {
                (fs::remove_file(link), format!("{} removed", link.display()))
            };
            note(put, link, what, &mut done, left);
        }
        let plugin = self.directory.join(PLUGIN);
        if plugin.symlink_metadata().is_ok() && left.is_empty() {
            let what = format!("{} removed", plugin.display());
            note(fs::remove_file(&plugin), &plugin, what, &mut done, left);
        }
        done
    }
}

/// Whether one of the directories has the plugin.
pub(super) fn is_installed(directories: &[PathBuf]) -> bool {
    directories.iter().any(|directory| directory.join(PLUGIN).exists())
}

/// Removes netavark's link to the plugin, if there is one.
pub(super) fn remove_link(netavark_dir: &Path, bin_dir: &Path, left: &mut Vec<String>) -> Vec<String> {
    let (link, mut done) = (netavark_dir.join(PLUGIN), Vec::new());
    let plugin = std::path::absolute(bin_dir.join(PLUGIN)).ok();
    if plugin.is_some() && fs::read_link(&link).ok() == plugin {
        note(fs::remove_file(&link), &link, format!("{} removed", link.display()), &mut done, left);
    }
    done
}

fn note(put: io::Result<()>, path: &Path, what: String, done: &mut Vec<String>, left: &mut Vec<String>) {
    match put {
        Ok(()) => done.push(what),
        Err(error) => left.push(format!("{}: {error}", path.display())),
    }
}

/// Whether a file is a link to the plugin beside it.
pub(crate) fn is_ours(path: &Path) -> bool {
    let target = fs::read_link(path).ok();
    let beside = path.with_file_name(PLUGIN);
    target.is_some_and(|target| target == Path::new(PLUGIN) || target == beside) && path != beside
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn netavarks_link_goes_and_another_ones_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (bin, link) = (dir.path().join("bin"), dir.path().join(PLUGIN));
        for (target, goes) in [(bin.join(PLUGIN), true), (PathBuf::from("/another/shunt"), false)] {
            symlink(target, &link).unwrap();
            let mut left = Vec::new();
            assert_eq!(remove_link(dir.path(), &bin, &mut left).len(), usize::from(goes));
            assert_eq!(link.is_symlink(), !goes);
        }
    }

    #[test]
    fn what_was_replaced_comes_back_and_what_is_others_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for (name, text) in [
            ("shunt", "plugin"),
            ("bridge.orig", "reference"),
            ("host-local", "another"),
            ("mine", "other"),
            ("mine.orig", "older"),
            ("shunt.new", "half"),
        ] {
            fs::write(path(name), text).unwrap();
        }
        for name in ["bridge", "bridge.new", "portmap", "shunt-ipam"] {
            symlink("shunt", path(name)).unwrap();
        }
        let mut left = Vec::new();
        let done = PluginNames::at(dir.path()).put_back(&mut left);
        assert!(left.is_empty() && done.len() == 6, "{done:?} {left:?}");
        let mut names: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["bridge", "host-local", "mine", "mine.orig"]);
        assert_eq!(fs::read_to_string(path("bridge")).unwrap(), "reference");
        assert!(PluginNames::at(dir.path()).put_back(&mut left).is_empty(), "nothing is done twice");
    }
}
