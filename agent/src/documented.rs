//! Sections of the operator's manual that are written from the code.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Set, it has the sections written anew.
const RENEW: &str = "SHUNT_RENEW_DOCS";

/// Two sections are of one file, and tests run beside each other.
static PAGE: Mutex<()> = Mutex::new(());

/// Whether the section of this name in `docs/operations.md`, between its two marks, is what the code says.
pub(crate) fn assert_current(name: &str, wanted: &str) {
    let _alone = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) =
        (format!("<!-- {name}: written from the code -->\n"), format!("<!-- {name}: end -->\n"));
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no `{begin}` in the manual"));
    let (found, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no `{end}` in the manual"));
    if std::env::var_os(RENEW).is_some() {
        std::fs::write(&path, format!("{before}{begin}{wanted}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(found, wanted, "{RENEW}=1 writes it anew: {}", path.display());
}

/// A row of a table.
pub(crate) fn row<const N: usize>(cells: [&str; N]) -> String {
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}
