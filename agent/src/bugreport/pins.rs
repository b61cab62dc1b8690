//! Programs, maps and links that are pinned, with the kernel's ids.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aya::maps::MapInfo;
use aya::programs::ProgramInfo;
use serde_json::{Value, json};

use super::part::{Had, Job, Lack};

/// Pins that are looked at: a port has half a dozen at most.
const MOST: usize = 20_000;

/// Directories of maps, and of links; all others hold programs.
const MAPS: &str = "maps";
const LINKS: [&str; 3] = ["links", "nics", "sockets"];

pub(super) fn jobs(bpffs: &Path) -> Vec<Job> {
    let bpffs = bpffs.to_path_buf();
    vec![Job::new("programs.json", move |_| pinned(&bpffs))]
}

fn pinned(bpffs: &Path) -> Result<Had, Lack> {
    let lack = |error| Lack::of(&format!("the pins in {}", bpffs.display()), &error);
    let mut pins = Vec::new();
    for version in listed(bpffs).map_err(lack)? {
        for folder in listed(&version).map_err(lack)? {
            pins.extend(listed(&folder).map_err(lack)?);
        }
    }
    let count = pins.len();
    pins.truncate(MOST);
    let shown: Vec<_> = pins.iter().map(|pin| shown(bpffs, pin)).collect();
    Ok(Had::json(shown)?.noting((count > MOST).then(|| format!("cut: {MOST} of {count} pins"))))
}

/// What is in a directory, in the order of the names; nothing where it is none.
fn listed(directory: &Path) -> io::Result<Vec<PathBuf>> {
    if !directory.metadata()?.is_dir() {
        return Ok(Vec::new());
    }
    let paths = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn shown(bpffs: &Path, pin: &Path) -> Value {
    let name = pin.strip_prefix(bpffs).unwrap_or(pin).display().to_string();
    let folder = pin.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    let told = match folder {
        MAPS => of_map(pin),
        links if LINKS.contains(&links) => return json!({ "pin": name }),
        _ => of_program(pin),
    };
    told.map_or_else(
        |error| json!({ "pin": name, "error": error }),
        |told| json!({ "pin": name, "is": told }),
    )
}

fn of_map(pin: &Path) -> Result<Value, String> {
    let info = MapInfo::from_pin(pin).map_err(|error| error.to_string())?;
    Ok(
        json!({ "id": info.id(), "name": info.name_as_str(), "type": info.map_type().ok().map(|it| format!("{it:?}")),
        "key": info.key_size(), "value": info.value_size(), "entries": info.max_entries() }),
    )
}

fn of_program(pin: &Path) -> Result<Value, String> {
    let info = ProgramInfo::from_pin(pin).map_err(|error| error.to_string())?;
    let loaded = info.loaded_at().map(|time| humantime::format_rfc3339_seconds(time).to_string());
    Ok(json!({ "id": info.id(), "name": info.name_as_str(), "tag": format!("{:016x}", info.tag()),
        "type": info.program_type() as u32, "loaded": loaded, "map_ids": info.map_ids().ok().flatten() }))
}
