//! Puts the plugin where a container runtime looks for it.
//!
//! In: the plugin's file and the runtime's plugin directory. Out: what was done, a line a name. The plugin behaves by the configuration's
//! `type`, and a runtime finds a plugin by its file name; so each personality is a symbolic link to the one file. Every name changes by a
//! rename: a call in progress keeps the file that it runs, and no call finds half of one.

mod names;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

pub use names::{LOOPBACK, PERSONALITIES, REFERENCE};

use crate::uninstall::{KEPT, PLUGIN, UNFINISHED, is_ours};

/// What is installed, and where.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The plugin's file.
    pub plugin: PathBuf,
    /// The runtime's plugin directory; made if there is none.
    pub bin_dir: PathBuf,
    /// Also take the names of [`REFERENCE`]; what is there is kept as `NAME.orig`.
    pub drop_in: bool,
    /// Also be `loopback` where there is no plugin of that name.
    pub loopback: bool,
    /// Where netavark looks for plugins; made if there is none.
    pub netavark_dir: Option<PathBuf>,
}

/// A step of an installation that failed; those before it are done, and all may be repeated.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {step}: {source}")]
pub struct InstallError {
    /// The file.
    pub path: PathBuf,
    /// What was done to it.
    pub step: &'static str,
    /// The file system's word.
    pub source: io::Error,
}

impl Installation {
    /// Installs the plugin under its names. Says what was done.
    ///
    /// # Errors
    /// [`InstallError`].
    pub fn install(&self) -> Result<Vec<String>, InstallError> {
        let plugin = self.bin_dir.join(PLUGIN);
        fs::create_dir_all(&self.bin_dir).map_err(failed(&self.bin_dir, "make the directory"))?;
        copy(&self.plugin, &plugin)?;
        let mut done = vec![plugin.display().to_string()];
        for name in PERSONALITIES {
            done.push(link(&self.bin_dir.join(name))?);
        }
        if self.drop_in {
            for name in REFERENCE {
                take_over(&self.bin_dir.join(name), &mut done)?;
            }
        }
        if self.loopback {
            done.extend(complete(&self.bin_dir.join(LOOPBACK))?);
        }
        if let Some(directory) = &self.netavark_dir {
            done.push(serve_netavark(directory, &plugin)?);
        }
        // A name that a crash of the node could take back is not installed.
        File::open(&self.bin_dir)
            .and_then(|directory| directory.sync_all())
            .map_err(failed(&self.bin_dir, "sync the directory"))?;
        Ok(done)
    }

    /// Puts the plugin in the place of an older one, and leaves alone which names it has beside its own. Says what was done; nothing where
    /// there is no plugin.
    ///
    /// # Errors
    /// [`InstallError`].
    pub fn renew(&self) -> Result<Vec<String>, InstallError> {
        if !self.bin_dir.join(PLUGIN).exists() {
            return Ok(Vec::new());
        }
        Self { drop_in: false, loopback: false, netavark_dir: None, ..self.clone() }.install()
    }
}

fn failed(path: &Path, step: &'static str) -> impl FnOnce(io::Error) -> InstallError {
    move |source| InstallError { path: path.to_path_buf(), step, source }
}

/// Copies a program beside the final name, has the disk keep it, and renames it.
///
/// # Errors
/// [`InstallError`]; the file that was there stays.
fn copy(from: &Path, to: &Path) -> Result<(), InstallError> {
    let mut source = shunt_regular_file::open(from).map_err(failed(from, "copy it"))?;
    let unfinished = unfinished(to)?;
    File::create_new(&unfinished)
        .and_then(|mut file| io::copy(&mut source, &mut file).map(|_| file))
        .and_then(|file| file.set_permissions(fs::Permissions::from_mode(0o755)).map(|()| file))
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&unfinished, to))
        .map_err(failed(to, "put it in place"))
}

/// Makes a link to the plugin beside it. Relative, so that the directory may be a mounted host's.
fn link(path: &Path) -> Result<String, InstallError> {
    let unfinished = unfinished(path)?;
    symlink(PLUGIN, &unfinished)
        .and_then(|()| fs::rename(&unfinished, path))
        .map_err(failed(path, "link it"))?;
    Ok(format!("{} -> {PLUGIN}", path.display()))
}

/// Links to the plugin from netavark's directory, which is another one. What is no link of that name is another's plugin, and stays.
fn serve_netavark(directory: &Path, plugin: &Path) -> Result<String, InstallError> {
    let path = directory.join(PLUGIN);
    fs::create_dir_all(directory).map_err(failed(directory, "make the directory"))?;
    if path.symlink_metadata().is_ok() && !path.is_symlink() {
        let taken = io::Error::new(io::ErrorKind::AlreadyExists, "another file has the name: remove it");
        return Err(failed(&path, "link it")(taken));
    }
    let target = std::path::absolute(plugin).map_err(failed(plugin, "find it"))?;
    let unfinished = unfinished(&path)?;
    symlink(&target, &unfinished)
        .and_then(|()| fs::rename(&unfinished, &path))
        .map_err(failed(&path, "link it"))?;
    Ok(format!("{} -> {}", path.display(), target.display()))
}

/// Links under a name that nobody has. A link that leads nowhere is no plugin.
fn complete(path: &Path) -> Result<Option<String>, InstallError> {
    if path.exists() { Ok(None) } else { link(path).map(Some) }
}

/// Links under a reference plugin's name. The plugin itself is kept under another name first: at no moment is its own nobody's.
fn take_over(path: &Path, done: &mut Vec<String>) -> Result<(), InstallError> {
    let kept = path.with_extension(KEPT);
    let is_there = path.symlink_metadata().is_ok() && !is_ours(path);
    // A link never takes the place of a program that is kept.
    if is_there && !(path.is_symlink() && kept.symlink_metadata().is_ok()) {
        let unfinished = unfinished(&kept)?;
        fs::hard_link(path, &unfinished)
            .and_then(|()| fs::rename(&unfinished, &kept))
            .map_err(failed(path, "keep it"))?;
        done.push(format!("{} kept as {}", path.display(), kept.display()));
    }
    done.push(link(path)?);
    Ok(())
}

/// The name of a file before it has its own, at which there is nothing: an installation that was interrupted may have left it.
fn unfinished(path: &Path) -> Result<PathBuf, InstallError> {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    let unfinished = PathBuf::from(name);
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed(&unfinished, "remove what an earlier installation left")(error))
        }
        _ => Ok(unfinished),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Machine {
        root: tempfile::TempDir,
    }

    impl Machine {
        /// A directory of plugins with another project's `bridge` in it.
        fn with_a_reference_bridge() -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("bin")).unwrap();
            for (name, content) in [("bin/bridge", "reference"), ("built-shunt", "plugin")] {
                fs::write(root.path().join(name), content).unwrap();
            }
            Self { root }
        }

        fn install(&self, drop_in: bool) -> Vec<String> {
            let (plugin, bin_dir) = (self.path("built-shunt"), self.path("bin"));
            Installation { plugin, bin_dir, drop_in, loopback: true, netavark_dir: None }.install().unwrap()
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.path(name)).unwrap()
        }
    }

    #[test]
    fn every_personality_is_a_relative_link_to_an_executable_plugin() {
        let machine = Machine::with_a_reference_bridge();
        assert_eq!(machine.install(false).len(), 1 + PERSONALITIES.len() + 1, "and loopback");
        for name in PERSONALITIES {
            assert_eq!(fs::read_link(machine.path("bin").join(name)).unwrap(), Path::new("shunt"));
        }
        assert_eq!(machine.read("bin/shunt-ipam"), "plugin");
        assert_eq!(fs::metadata(machine.path("bin/shunt")).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn another_projects_bridge_stays_unless_asked_for() {
        let machine = Machine::with_a_reference_bridge();
        machine.install(false);
        assert_eq!(machine.read("bin/bridge"), "reference");
        assert!(!machine.path("bin/vlan").exists());
    }

    #[test]
    fn a_loopback_that_is_there_stays_and_one_that_is_missing_is_the_plugin() {
        let machine = Machine::with_a_reference_bridge();
        machine.install(false);
        assert_eq!(machine.read("bin/loopback"), "plugin");
        fs::remove_file(machine.path("bin/loopback")).unwrap();
        fs::write(machine.path("bin/loopback"), "reference").unwrap();
        let done = machine.install(true);
        assert_eq!(machine.read("bin/loopback"), "reference");
        assert!(!done.iter().any(|line| line.contains("loopback")), "{done:?}");
    }

    #[test]
    fn a_plugin_is_renewed_where_there_is_one_with_the_names_that_it_has() {
        let machine = Machine::with_a_reference_bridge();
        machine.install(true);
        fs::write(machine.path("built-shunt"), "newer").unwrap();
        let of = |bin: &str| {
            let (plugin, bin_dir) = (machine.path("built-shunt"), machine.path(bin));
            Installation { plugin, bin_dir, drop_in: true, loopback: true, netavark_dir: None }
                .renew()
                .unwrap()
        };
        assert_eq!(of("bin").len(), 1 + PERSONALITIES.len());
        assert_eq!(
            (machine.read("bin/bridge"), machine.read("bin/bridge.orig")),
            ("newer".into(), "reference".into())
        );
        assert!(of("none").is_empty() && !machine.path("none").exists());
    }

    #[test]
    fn a_drop_in_keeps_what_it_replaces_and_is_idempotent() {
        let machine = Machine::with_a_reference_bridge();
        machine.install(true);
        machine.install(true);
        assert_eq!(machine.read("bin/bridge"), "plugin");
        assert_eq!(machine.read("bin/bridge.orig"), "reference");
        assert_eq!(machine.read("bin/portmap"), "plugin");
        assert!(!machine.path("bin/portmap.orig").exists());
    }

    #[test]
    fn netavark_finds_the_plugin_by_a_link_and_another_plugin_stays() {
        let machine = Machine::with_a_reference_bridge();
        let netavark_dir = machine.path("libexec/netavark");
        let of = || {
            let (plugin, bin_dir) = (machine.path("built-shunt"), machine.path("bin"));
            let netavark_dir = Some(netavark_dir.clone());
            Installation { plugin, bin_dir, drop_in: false, loopback: false, netavark_dir }
        };
        for _ in 0..2 {
            of().install().unwrap();
            assert_eq!(fs::read_link(netavark_dir.join("shunt")).unwrap(), machine.path("bin/shunt"));
        }
        fs::remove_file(netavark_dir.join("shunt")).unwrap();
        fs::write(netavark_dir.join("shunt"), "another's").unwrap();
        let error = of().install().unwrap_err();
        assert!(error.to_string().contains("remove it"), "{error}");
        assert_eq!(machine.read("libexec/netavark/shunt"), "another's");
    }

    #[test]
    fn what_is_kept_stays_when_the_name_is_a_link_by_now() {
        let machine = Machine::with_a_reference_bridge();
        machine.install(true);
        for target in [machine.path("bin/shunt"), PathBuf::from("/another/shunt")] {
            fs::remove_file(machine.path("bin/bridge")).unwrap();
            symlink(target, machine.path("bin/bridge")).unwrap();
            machine.install(true);
            assert_eq!(machine.read("bin/bridge.orig"), "reference");
            assert_eq!(machine.read("bin/bridge"), "plugin");
        }
        // A program is a newer one of the reference's.
        fs::remove_file(machine.path("bin/bridge")).unwrap();
        fs::write(machine.path("bin/bridge"), "newer reference").unwrap();
        machine.install(true);
        assert_eq!(machine.read("bin/bridge.orig"), "newer reference");
    }

    #[test]
    fn what_stands_under_an_unfinished_name_is_not_written_to() {
        let machine = Machine::with_a_reference_bridge();
        symlink(machine.path("bin/bridge"), machine.path("bin/shunt.new")).unwrap();
        machine.install(false);
        assert_eq!(machine.read("bin/bridge"), "reference");
        assert!(!machine.path("bin/shunt").is_symlink());
    }

    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let machine = Machine::with_a_reference_bridge();
        let (plugin, bin_dir) = (machine.path("pipe"), machine.path("bin"));
        nix::unistd::mkfifo(&plugin, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = Installation { plugin, bin_dir, drop_in: false, loopback: false, netavark_dir: None }
            .install()
            .unwrap_err();
        assert!(error.to_string().contains("/pipe: copy it"), "{error}");
        assert!(!machine.path("bin/shunt").exists());
    }

    #[test]
    fn a_plugin_that_runs_is_replaced_and_runs_on() {
        let machine = Machine::with_a_reference_bridge();
        machine.install(false);
        // Whoever has the file open, as the kernel has one that it runs, keeps what was in it.
        let mut running = File::open(machine.path("bin/shunt")).unwrap();
        fs::write(machine.path("built-shunt"), "newer").unwrap();
        // What an installation that was killed has left.
        fs::write(machine.path("bin/shunt.new"), "half of").unwrap();
        symlink("nowhere", machine.path("bin/shunt-ipam.new")).unwrap();
        machine.install(false);
        let mut had = String::new();
        io::Read::read_to_string(&mut running, &mut had).unwrap();
        assert_eq!((had.as_str(), machine.read("bin/shunt").as_str()), ("plugin", "newer"));
        let names = fs::read_dir(machine.path("bin")).unwrap();
        let unfinished = names.filter(|name| name.as_ref().unwrap().path().extension().is_some());
        assert_eq!(unfinished.count(), 0);
    }

    #[test]
    fn a_plugin_that_is_not_there_is_named_and_what_was_installed_stays() {
        let machine = Machine::with_a_reference_bridge();
        machine.install(false);
        let (plugin, bin_dir) = (machine.path("absent"), machine.path("bin"));
        let error = Installation { plugin, bin_dir, drop_in: false, loopback: false, netavark_dir: None }
            .install()
            .unwrap_err();
        assert!(error.to_string().contains("/absent: copy it"), "{error}");
        assert_eq!(machine.read("bin/shunt"), "plugin");
    }
}
