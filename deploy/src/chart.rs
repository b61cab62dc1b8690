//! The Helm chart, and the plain manifests that are rendered from it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A file that is rendered from the chart and kept in the repository.
#[derive(Clone, Copy, Debug)]
pub struct Manifest {
    /// From the checkout's root.
    pub path: &'static str,
    /// What it is for, as its first lines.
    about: &'static str,
    /// Arguments for `helm template`.
    arguments: &'static [&'static str],
}

/// What `kubectl apply` and `kubectl delete` take.
pub const MANIFESTS: [Manifest; 2] = [
    Manifest {
        path: "deploy/kubernetes/shunt.yaml",
        about: "# shunt on every node of a cluster. Install:   kubectl apply -f shunt.yaml\n",
        arguments: &[],
    },
    Manifest {
        path: "deploy/kubernetes/uninstall.yaml",
        about: "# Takes shunt off every node, in the place of the agent. docs/kubernetes.md has the command.\n",
        arguments: &["--set", "uninstall=true", "--show-only", "templates/daemonset.yaml"],
    },
];

/// The namespace of the plain manifests.
const NAMESPACE: &str = "kube-system";

/// The chart in a checkout, and the program that renders it.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Helm's program.
    pub helm: PathBuf,
    /// The checkout's root.
    pub checkout: PathBuf,
}

impl Chart {
    /// The text that a manifest's file is to have.
    ///
    /// # Errors
    /// Helm refuses.
    pub fn manifest(&self, manifest: &Manifest) -> Result<String> {
        let rendered = self.render(manifest.arguments)?;
        let generated = "# Rendered from deploy/helm/shunt by `cargo xtask manifests`: change the chart.\n";
        Ok(format!("{}{generated}{rendered}", manifest.about))
    }

    /// Renders the chart with more arguments for `helm template`.
    ///
    /// # Errors
    /// What Helm says, as of values that its schema refuses.
    pub fn render(&self, arguments: &[&str]) -> Result<String> {
        self.run(&[&["template", "shunt", "--namespace", NAMESPACE], arguments].concat())
    }

    /// Has Helm look at the chart as at one that is to be published.
    ///
    /// # Errors
    /// What it finds.
    pub fn lint(&self) -> Result<String> {
        self.run(&["lint", "--strict"])
    }

    /// Nothing of the user's is asked: neither a cluster nor settings.
    fn run(&self, arguments: &[&str]) -> Result<String> {
        let chart = self.checkout.join("deploy/helm/shunt");
        let mut command = Command::new(&self.helm);
        command.args(arguments).arg(&chart).env_clear().env("HOME", "/nonexistent");
        let output = command.output().with_context(|| format!("run {}", self.helm.display()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !output.status.success() {
            bail!("helm {}: {}{}", arguments.join(" "), text(&output.stdout), text(&output.stderr));
        }
        // Lines that end in blanks are what templates leave of lines that hold nothing.
        let rendered = text(&output.stdout);
        Ok(rendered.lines().map(|line| line.trim_end().to_owned() + "\n").collect())
    }

    /// Writes the manifests.
    ///
    /// # Errors
    /// Helm refuses, or a file cannot be written.
    pub fn write_manifests(&self) -> Result<Vec<PathBuf>> {
        MANIFESTS.iter().map(|manifest| self.write(manifest)).collect()
    }

    fn write(&self, manifest: &Manifest) -> Result<PathBuf> {
        let path = self.checkout.join(manifest.path);
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, self.manifest(manifest).map_err(std::io::Error::other)?))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}
