//! Whether there is memory for what is to be measured: a machine that swaps or kills measures nothing.

use anyhow::{Context, Result, ensure};

/// Of the kernel, for a namespace with a veth pair, in KiB: some 300 were measured, and the reference chain has rules besides.
const ATTACHMENT_KIB: u64 = 1024;

/// Of everything else.
const BASE_KIB: u64 = 256 * 1024;

/// Fails where so many attachments would not fit.
pub(crate) fn ensure_room_for(attachments: usize) -> Result<()> {
    let text = std::fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
    enough(&text, attachments)
}

fn enough(meminfo: &str, attachments: usize) -> Result<()> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available: u64 = line
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .context("no MemAvailable in /proc/meminfo")?;
    let needed = BASE_KIB + ATTACHMENT_KIB * attachments as u64;
    ensure!(
        available >= needed,
        "{attachments} attachments need {} MiB of memory, and {} are available",
        needed / 1024,
        available / 1024
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_said_in_numbers() {
        let meminfo = "MemTotal:  2000000 kB\nMemAvailable:  1048576 kB\n";
        assert!(enough(meminfo, 500).is_ok());
        let error = enough(meminfo, 1000).unwrap_err().to_string();
        assert_eq!(error, "1000 attachments need 1256 MiB of memory, and 1024 are available");
        assert!(enough("", 0).is_err());
    }
}
