//! The files of a package, by their paths on a node.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::about::{CONFIGURATION, PLUGIN};
use crate::compress::gzip;
use crate::contents::{Contents, Entry, add_licences, read_programs};
use crate::program::Architecture;

/// Where the agent is; `cargo xtask install` puts one elsewhere.
const AGENT: &str = "usr/sbin/shunt-agent";

/// The agent's unit, which names the agent of `cargo xtask install`.
const UNIT: &str = include_str!("../../../agent/dist/shunt-agent.service");
const AGENT_IN_UNIT: &str = "/usr/local/sbin/shunt-agent";

/// The text of the file that is an operator's.
const CONFIGURATION_TEXT: &str = include_str!("../../package/agent.toml");

/// What keeps others off the interfaces.
const OTHERS: [(&str, &str); 5] = [
    ("usr/lib/NetworkManager/conf.d/90-shunt.conf", include_str!("../../package/networkmanager.conf")),
    ("usr/lib/systemd/network/05-shunt.network", include_str!("../../package/shunt.network")),
    ("usr/lib/systemd/network/05-shunt.link", include_str!("../../package/shunt.link")),
    (
        "usr/lib/systemd/network/05-shunt-gateways.network",
        include_str!("../../package/shunt-gateways.network"),
    ),
    ("usr/lib/systemd/network/05-shunt-gateways.link", include_str!("../../package/shunt-gateways.link")),
];

/// Directories that are made where there are none: the runtime's, for plugins and for networks.
const DIRECTORIES: [&str; 2] = ["opt/cni/bin", "etc/cni/net.d"];

/// The completions, as `shunt-pages` names them, and where a shell looks for them.
const COMPLETIONS: [(&str, &str); 2] = [
    ("shunt-agent.bash", "usr/share/bash-completion/completions/shunt-agent"),
    ("shunt-agent.fish", "usr/share/fish/vendor_completions.d/shunt-agent.fish"),
];
const ZSH: &str = "_shunt-agent";

/// Distributions look in different directories for what packages bring zsh.
pub(super) const ZSH_OF_DEBIAN: &str = "usr/share/zsh/vendor-completions";
pub(super) const ZSH_OF_OTHERS: &str = "usr/share/zsh/site-functions";

/// Where the tar file has the configuration: unpacked anew, it writes over no operator's.
pub(super) const EXAMPLE: &str = "usr/share/doc/shunt/agent.toml";

/// What every package has.
#[derive(Clone, Debug)]
pub(super) struct Files {
    contents: Contents,
    zsh: Vec<u8>,
    pub(super) architecture: Architecture,
}

impl Files {
    /// Reads them.
    ///
    /// # Errors
    /// A program or a page is missing, or a program does not run alone.
    pub(super) fn read(programs: &Path, pages: &Path, checkout: &Path) -> Result<Self> {
        let mut contents = Contents::default();
        let architecture = read_programs(&mut contents, programs, [AGENT, PLUGIN])?;
        add_licences(&mut contents, checkout)?;
        ensure!(UNIT.matches(AGENT_IN_UNIT).count() == 1, "the unit does not name {AGENT_IN_UNIT} once");
        let unit = UNIT.replace(AGENT_IN_UNIT, &format!("/{AGENT}"));
        contents.add("usr/lib/systemd/system/shunt-agent.service", Entry::text(&unit));
        for (path, text) in OTHERS {
            contents.add(path, Entry::text(text));
        }
        for path in DIRECTORIES {
            contents.add(path, Entry::Directory { mode: 0o755 });
        }
        for (name, path) in COMPLETIONS {
            contents.add(path, Entry::File { mode: 0o644, bytes: read(&pages.join(name))? });
        }
        add_pages(&mut contents, &pages.join("man8"))?;
        Ok(Self { contents, zsh: read(&pages.join(ZSH))?, architecture })
    }

    /// The files with those of zsh in its directory, and the configuration at its place.
    pub(super) fn at(&self, zsh: &str, configuration: &str) -> Contents {
        let mut contents = self.contents.clone();
        contents.add(&format!("{zsh}/{ZSH}"), Entry::File { mode: 0o644, bytes: self.zsh.clone() });
        contents.add(configuration, Entry::text(CONFIGURATION_TEXT));
        contents
    }

    /// The same at the places of a package manager.
    pub(super) fn managed(&self, zsh: &str) -> Contents {
        self.at(zsh, CONFIGURATION)
    }
}

fn add_pages(contents: &mut Contents, directory: &Path) -> Result<()> {
    let failed = || format!("no pages in {}: shunt-pages writes them", directory.display());
    for entry in fs::read_dir(directory).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let name = entry.file_name().into_string().ok().with_context(failed)?;
        let bytes = gzip(&read(&entry.path())?)?;
        contents.add(&format!("usr/share/man/man8/{name}.gz"), Entry::File { mode: 0o644, bytes });
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
