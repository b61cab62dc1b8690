//! Packages of the programs that are built.

use std::fs;
use std::path::Path;

use shunt_deploy::{Origin, Package, Packages};
use shunt_lab::Binaries;

/// Makes the packages of a version in a directory, of copies of the programs that are as new as the call.
pub(crate) fn make(directory: &Path, version: &str) -> Packages {
    let [programs, pages] = ["programs", "pages"].map(|name| directory.join(version).join(name));
    fs::create_dir_all(&programs).unwrap();
    Binaries::find().unwrap().copy_to(&programs).unwrap();
    shunt_pages::write(&pages).unwrap();
    let origin = Origin { version: version.to_owned(), revision: None, seconds: 1_700_000_000 };
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    Package { programs: &programs, pages: &pages, checkout, origin }.make(directory).unwrap()
}
