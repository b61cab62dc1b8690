//! The house rules that neither rustfmt nor clippy knows.

mod arrows;
mod circles;
mod documents;
mod finding;
mod keys;
mod length;
mod maps;
mod markdown;
mod names;
mod source;
mod unsafe_code;
mod words;

use anyhow::{Result, bail};

pub(super) fn run() -> Result<()> {
    let sources = source::all()?;
    for warning in length::long(&sources) {
        eprintln!("tidy: warning: {}: {}", warning.place, warning.message);
    }
    let rules = [
        documents::missing,
        documents::too_long,
        documents::broken_links,
        documents::unknown_paths,
        arrows::wrong,
        circles::closed,
        keys::undocumented,
        length::too_long,
        length::over_a_screen,
        names::forbidden,
        words::forbidden,
        unsafe_code::misplaced,
        maps::misnamed,
    ];
    let findings: Vec<_> = rules.iter().flat_map(|rule| rule(&sources)).collect();
    for finding in &findings {
        eprintln!("tidy: {}: {}", finding.place, finding.message);
    }
    if !findings.is_empty() {
        bail!("{} house rules broken", findings.len());
    }
    Ok(())
}
