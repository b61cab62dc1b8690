//! What a run leaves: `results.json` for programs, `report.md` and charts for people.

mod chart;
mod markdown;
mod overview;
mod spread;

use std::path::Path;

use anyhow::{Context, Result};

use crate::results::Results;

/// Writes everything into `directory`, which is made.
///
/// # Errors
/// When something cannot be written.
pub(crate) fn write(results: &Results, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
    results.write(directory)?;
    overview::draw(&results.comparisons, &directory.join("overview.svg"))?;
    for comparison in &results.comparisons {
        spread::draw(comparison, &directory.join(format!("{}.svg", comparison.name)))?;
    }
    let path = directory.join("report.md");
    std::fs::write(&path, markdown::report(results)).with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{Better, Comparison, Row};
    use crate::header::Header;
    use crate::results::{Fact, NotMeasured};

    fn results() -> Results {
        let row = |name: &str, title: &str, figures: [f64; 3], fast_share| Row {
            figures: figures.to_vec(),
            fast_share,
            ..Row::new(name, title)
        };
        let mut results = Results::new(Header::gather());
        let comparison = Comparison {
            name: "rr".into(),
            title: "TCP round trip".into(),
            unit: "µs".into(),
            better: Better::Less,
            setting: "both ends on CPU 0".into(),
            rows: vec![
                row("bare-veth", "bare veth pair", [10.0, 10.0, 10.0], None),
                row("shunt", "shunt", [11.0, 12.0, 13.0], Some(0.5)),
            ],
        };
        results.comparisons.push(comparison.judged());
        results.facts.push(Fact {
            name: "agent-resident".into(),
            title: "agent's memory".into(),
            value: 9000.0,
            unit: "KiB".into(),
            limit: Some(8000.0),
        });
        results.not_measured.push(NotMeasured { name: "stream-1".into(), why: "no iperf3".into() });
        results
    }

    #[test]
    fn a_report_shows_losses_void_rows_and_what_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        write(&results(), directory.path()).unwrap();
        let report = std::fs::read_to_string(directory.path().join("report.md")).unwrap();
        assert!(report.contains("| shunt | 12.0 |  | **1.200×** |"), "{report}");
        assert!(report.contains("50.00%, **void**"), "{report}");
        assert!(report.contains("| agent's memory | 9000.0 KiB **over** | 8000 |"), "{report}");
        assert!(report.contains("- stream-1: no iperf3"), "{report}");
        for picture in ["overview.svg", "rr.svg"] {
            let svg = std::fs::read_to_string(directory.path().join(picture)).unwrap();
            assert!(svg.starts_with("<svg") && svg.contains("bare veth pair"), "{picture}: {svg}");
            assert!(svg.contains("void"), "{picture}: {svg}");
            assert!(report.contains(&format!("({picture})")), "{report}");
        }
    }

    #[test]
    fn results_are_read_as_they_were_written_and_others_refused() {
        let directory = tempfile::tempdir().unwrap();
        let written = results();
        written.write(directory.path()).unwrap();
        let path = directory.path().join("results.json");
        let read = Results::read(&path).unwrap();
        assert_eq!(read.comparisons, written.comparisons);
        assert_eq!((read.facts, read.not_measured), (written.facts, written.not_measured));
        for (text, why) in [("{}", "has no schema"), ("{\"schema\":1}", "has schema 1"), ("[", "is no JSON")]
        {
            std::fs::write(&path, text).unwrap();
            assert!(Results::read(&path).unwrap_err().to_string().contains(why), "{text}");
        }
    }
}
