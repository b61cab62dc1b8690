//! `shunt-deploy`, which `cargo xtask image`, `cargo xtask package` and `cargo xtask manifests` run.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "printing is a command line's job")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Parser;
use shunt_deploy::{Chart, Image, Origin, Package};

/// What a cluster, or a node, gets of shunt.
#[derive(Parser)]
enum Arguments {
    /// Make the container image from programs that are built
    Image {
        /// Where the statically linked programs are
        #[arg(long, value_name = "DIR")]
        programs: PathBuf,
        /// Where the image and its bill of materials go
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Make the packages for nodes from programs that are built
    Package {
        /// Where the statically linked programs are
        #[arg(long, value_name = "DIR")]
        programs: PathBuf,
        /// What shunt-pages has written
        #[arg(long, value_name = "DIR")]
        pages: PathBuf,
        /// Where the packages go
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Render the manifests from the chart
    Manifests {
        /// Helm's program
        #[arg(long, value_name = "FILE")]
        helm: PathBuf,
    },
}

fn main() -> Result<()> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate is in a checkout")?;
    match Arguments::parse() {
        Arguments::Image { programs, out } => {
            let made = Image { programs: &programs, checkout, origin: Origin::of(checkout)? }.make(&out)?;
            println!("image      {} {} {}", made.reference, made.architecture, made.digest);
            println!("archive    {}", made.archive.display());
            println!("materials  {}", made.materials.display());
        }
        Arguments::Package { programs, pages, out } => {
            let package =
                Package { programs: &programs, pages: &pages, checkout, origin: Origin::of(checkout)? };
            let made = package.make(&out)?;
            for path in [made.deb, made.rpm, made.tarball] {
                println!("{}", path.display());
            }
        }
        Arguments::Manifests { helm } => {
            for path in (Chart { helm, checkout: checkout.to_path_buf() }).write_manifests()? {
                println!("{}", path.display());
            }
        }
    }
    Ok(())
}
