//! The agent's last log lines: from a file, or the journal's.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::command;
use super::part::{Had, Job, Lack};

/// The unit that the journal is asked for.
const UNIT: &str = "shunt-agent";

/// Lines of the journal.
const LINES: &str = "5000";

/// Bytes of a file's end.
const LAST: u64 = 2 << 20;

pub(super) fn jobs(file: Option<PathBuf>) -> Vec<Job> {
    vec![Job::new("agent.log", move |by| match file {
        Some(file) => tail(&file),
        None => journal(by),
    })]
}

fn tail(path: &Path) -> Result<Had, Lack> {
    let read = || {
        let mut file = shunt_regular_file::open(path)?;
        let begin = file.metadata()?.len().saturating_sub(LAST);
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        file.take(LAST).read_to_end(&mut bytes)?;
        Ok((begin, String::from_utf8_lossy(&bytes).into_owned()))
    };
    let (begin, text) = read().map_err(|error| Lack::of(&path.display().to_string(), &error))?;
    Ok(Had::text(text).noting((begin > 0).then(|| format!("cut: from byte {begin} on"))))
}

fn journal(by: Instant) -> Result<Had, Lack> {
    let arguments =
        ["--unit", UNIT, "--lines", LINES, "--no-pager", "--quiet", "--output", "short-iso-precise"];
    let printed = command::run(Path::new("journalctl"), &arguments, by)?;
    match printed.output.trim() {
        _ if !printed.success => Err(Lack::Failed(format!("journalctl: {}", printed.errors.trim()))),
        "" => Err(Lack::Absent(format!(
            "the journal has no line of {UNIT}: say --log FILE, or of a pod ask `kubectl logs`"
        ))),
        _ => Ok(Had::text(printed.output)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_end_of_a_long_file_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "0123456789\n".repeat(200_000) + "last\n").unwrap();
        let had = tail(&path).unwrap();
        assert!(had.note.as_deref().is_some_and(|note| note.starts_with("cut: from byte")));
        let bytes = had.into_bytes();
        assert!(bytes.len() as u64 <= LAST && bytes.ends_with(b"9\nlast\n"));
        assert!(matches!(tail(dir.path()), Err(Lack::Failed(_))));
    }
}
