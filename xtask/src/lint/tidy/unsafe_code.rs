//! `unsafe` is for the kernel programs, the map layout and what no crate does for plugin and agent as these need it; everybody else asks a crate that
//! has done it well.

use super::finding::Finding;
use super::source::Source;

const ALLOWED: [&str; 4] =
    ["ebpf/programs/src/", "ebpf/src/abi", "cni-plugin/socket-namespace/src/", "agent/tcx-query/src/"];
const FORMS: [&str; 4] = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];

pub(super) fn misplaced(sources: &[Source]) -> Vec<Finding> {
    let elsewhere = |source: &&Source| {
        source.is_rust() && !ALLOWED.iter().any(|allowed| source.path.starts_with(allowed))
    };
    let mut findings = Vec::new();
    for source in sources.iter().filter(elsewhere) {
        for (line, code) in source.code() {
            // A string is data: this file itself names the forms.
            let code = code.split('"').step_by(2).collect::<String>();
            if FORMS.iter().any(|form| code.contains(form)) {
                findings.push(Finding::at(source, line, "unsafe does not belong here"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source::source;
    use super::*;

    #[test]
    fn an_unsafe_block_is_found_where_it_does_not_belong() {
        let code = "let port = unsafe { PORTS.get(key) };\n";
        assert!(misplaced(&source("ebpf/programs/src/maps.rs", code)).is_empty());
        assert_eq!(misplaced(&source("agent/src/maps.rs", code)).len(), 1);
        assert!(misplaced(&source("agent/src/maps.rs", "// an unsafe { block }\n")).is_empty());
    }
}
