//! The memory of what setup found, so that a second run starts no process.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::toolchain::{Core, Toolchain};
use super::tools::Tools;
use super::{cache, linker};

/// What was found, if it was found for the same requirements and is still there unchanged.
pub(super) fn read() -> Option<Tools> {
    let text = fs::read_to_string(path().ok()?).ok()?;
    let stamp: Value = serde_json::from_str(&text).ok()?;
    let field = |name: &str| stamp[name].as_str().map(str::to_owned);
    let toolchain = Toolchain {
        name: field("toolchain")?,
        rustc: field("rustc")?.into(),
        libraries: field("libraries")?.into(),
        core: if stamp["prebuilt_core"].as_bool()? { Core::Prebuilt } else { Core::FromSource },
    };
    let tools = Tools { toolchain, linker: field("linker")?.into() };
    (stamp == describe(&tools).ok()? && tools.toolchain.core_marker()?.exists()).then_some(tools)
}

pub(super) fn write(tools: &Tools) -> Result<()> {
    let path = path()?;
    let unfinished = path.with_extension("new");
    fs::write(&unfinished, format!("{:#}\n", describe(tools)?))
        .and_then(|()| fs::rename(&unfinished, &path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Everything that must be the same at the next run: an updated compiler is another compiler.
fn describe(tools: &Tools) -> Result<Value> {
    Ok(json!({
        "requirements": format!("bpf-linker {}, LLVM {}", linker::VERSION, linker::LLVM),
        "toolchain": tools.toolchain.name,
        "rustc": tools.toolchain.rustc,
        "rustc_modified": modified(&tools.toolchain.rustc)?,
        "libraries": tools.toolchain.libraries,
        "prebuilt_core": tools.toolchain.core == Core::Prebuilt,
        "linker": tools.linker,
        "linker_modified": modified(&tools.linker)?,
    }))
}

fn modified(path: &Path) -> Result<u64> {
    let time = fs::metadata(path).and_then(|metadata| metadata.modified());
    let time = time.with_context(|| format!("cannot look at {}", path.display()))?;
    Ok(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

fn path() -> Result<PathBuf> {
    Ok(cache::directory()?.join("setup.json"))
}
