//! The kernel keeps 15 characters of a map's name; a longer one could not be told from its neighbour.

use super::finding::Finding;
use super::source::Source;

const LONGEST: usize = 15;

pub(super) fn misnamed(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in
        sources.iter().filter(|source| source.is_rust() && source.path.starts_with("ebpf/programs/"))
    {
        let mut declared = false;
        for (line, code) in source.code() {
            declared |= code.contains("#[map") || code.contains("#[btf_map");
            let Some((_, declaration)) = code.split_once("static ") else { continue };
            let name = declaration.split(':').next().unwrap_or_default().trim();
            if declared && name.len() > LONGEST {
                findings.push(Finding::at(
                    source,
                    line,
                    format!("map {name} has more than {LONGEST} characters"),
                ));
            }
            declared = false;
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source::source;
    use super::*;

    fn declare(name: &str) -> String {
        format!("#[map]\npub(crate) static {name}: HashMap<Key, Value> = HashMap::new();\n")
    }

    #[test]
    fn a_name_that_the_kernel_would_cut_is_found() {
        assert!(misnamed(&source("ebpf/programs/src/maps.rs", &declare("FIFTEEN_LETTERS"))).is_empty());
        assert_eq!(misnamed(&source("ebpf/programs/src/maps.rs", &declare("SIXTEEN_LETTERS_"))).len(), 1);
    }
}
