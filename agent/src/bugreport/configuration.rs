//! The agent's configuration file, as it is.

use std::io::Read as _;
use std::path::Path;

use super::part::{Had, Job, Lack};
use crate::config::Options;

/// Bytes that are read of it.
const LONGEST: u64 = 256 << 10;

pub(super) fn jobs(path: &Path) -> Vec<Job> {
    let path = path.to_path_buf();
    vec![Job::new("agent.toml", move |_| read(&path))]
}

/// Only a file that the agent can use is packed: nobody knows what is in another one.
fn read(path: &Path) -> Result<Had, Lack> {
    let name = path.display().to_string();
    let lack = |error| Lack::of(&name, &error);
    let mut text = String::new();
    shunt_regular_file::open(path)
        .and_then(|file| file.take(LONGEST).read_to_string(&mut text))
        .map_err(lack)?;
    match toml::from_str::<Options>(&text) {
        Ok(_) => Ok(Had::text(text)),
        Err(error) => {
            let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            let why = error.message();
            Err(Lack::Failed(format!(
                "{name}, line {line}: {why}; the agent cannot use it, and it is left out"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_is_no_configuration_is_left_out_and_the_fault_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.toml");
        fs::write(&path, "# mine\nadmission = 'warn'\n").unwrap();
        assert_eq!(read(&path).unwrap().into_bytes(), b"# mine\nadmission = 'warn'\n");
        fs::write(&path, "apiVersion: v1\nusers: [{token: hunter2}]\n").unwrap();
        assert!(
            matches!(read(&path), Err(Lack::Failed(why)) if why.contains("line 1") && !why.contains("hunter2"))
        );
        fs::write(&path, "admission = 'warn'\nsecrets = '''\nhunter2'''\n").unwrap();
        assert!(
            matches!(read(&path), Err(Lack::Failed(why)) if why.contains("line 2") && !why.contains("hunter2"))
        );
        assert!(matches!(read(&dir.path().join("none")), Err(Lack::Absent(_))));
    }
}
