//! The bill of materials: the crates that are linked into the two programs, as `cargo metadata` resolves them, in CycloneDX 1.5.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Node, Package, PackageId};
use cyclonedx_bom::external_models::normalized_string::NormalizedString;
use cyclonedx_bom::external_models::spdx::SpdxExpression;
use cyclonedx_bom::external_models::uri::Purl;
use cyclonedx_bom::models::bom::Bom;
use cyclonedx_bom::models::component::{Classification, Component, Components};
use cyclonedx_bom::models::dependency::{Dependencies, Dependency};
use cyclonedx_bom::models::license::{LicenseChoice, Licenses};
use cyclonedx_bom::models::metadata::Metadata as About;
use cyclonedx_bom::validation::Validate as _;

use crate::origin::Origin;
use crate::program::Architecture;

/// The packages whose programs are in the image.
const PROGRAMS: [&str; 2] = ["shunt", "shunt-agent"];

/// Lists what is linked in for this processor: no dependencies of build scripts and tests.
///
/// # Errors
/// `cargo metadata` fails.
pub(crate) fn list(checkout: &Path, architecture: Architecture, origin: &Origin) -> Result<Vec<u8>> {
    let metadata = resolve(checkout, architecture)?;
    let packages: BTreeMap<&PackageId, &Package> =
        metadata.packages.iter().map(|package| (&package.id, package)).collect();
    let resolved = metadata.resolve.as_ref().context("cargo metadata resolves nothing")?;
    let nodes: BTreeMap<&PackageId, &Node> = resolved.nodes.iter().map(|node| (&node.id, node)).collect();
    let linked = linked(&metadata, &nodes);
    let of = |id: &&PackageId| packages.get(*id).copied();

    let components = linked.iter().filter_map(of).map(component).collect::<Result<_>>()?;
    let dependencies = linked.iter().filter_map(|id| {
        let uses = normal(nodes.get(id)?).filter_map(|id| Some(reference(packages.get(id)?)));
        Some(Dependency { dependency_ref: reference(of(id)?), dependencies: uses.collect() })
    });
    let about = Component::new(Classification::Container, "shunt", &origin.version, Some("image".to_owned()));
    let bom = Bom {
        serial_number: None,
        metadata: Some(About { component: Some(about), ..About::default() }),
        components: Some(Components(components)),
        dependencies: Some(Dependencies(dependencies.collect())),
        ..Bom::default()
    };
    anyhow::ensure!(bom.validate().passed(), "the bill of materials is not valid: {:?}", bom.validate());
    let mut json = Vec::new();
    bom.output_as_json_v1_5(&mut json).context("write the bill of materials")?;
    Ok(json)
}

fn resolve(checkout: &Path, architecture: Architecture) -> Result<Metadata> {
    let processor = match architecture {
        Architecture::Amd64 => "x86_64",
        Architecture::Arm64 => "aarch64",
    };
    let platform = format!("{processor}-unknown-linux-musl");
    let options = ["--locked".to_owned(), "--filter-platform".to_owned(), platform];
    MetadataCommand::new().current_dir(checkout).other_options(options).exec().context("cargo metadata")
}

/// The programs' packages and all that they are linked with.
fn linked<'a>(metadata: &'a Metadata, nodes: &BTreeMap<&'a PackageId, &'a Node>) -> BTreeSet<&'a PackageId> {
    let programs = metadata.workspace_packages().into_iter();
    let programs = programs.filter(|package| PROGRAMS.contains(&package.name.as_str()));
    let mut waiting: Vec<_> = programs.map(|package| &package.id).collect();
    let mut linked = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if linked.insert(id) {
            waiting.extend(nodes.get(id).into_iter().flat_map(|node| normal(node)));
        }
    }
    linked
}

/// What a package is linked with.
fn normal(node: &Node) -> impl Iterator<Item = &PackageId> {
    let is_normal =
        |kinds: &[cargo_metadata::DepKindInfo]| kinds.iter().any(|info| info.kind == DependencyKind::Normal);
    node.deps
        .iter()
        .filter(move |dependency| is_normal(&dependency.dep_kinds))
        .map(|dependency| &dependency.pkg)
}

fn component(package: &Package) -> Result<Component> {
    let version = package.version.to_string();
    let kind = if PROGRAMS.contains(&package.name.as_str()) {
        Classification::Application
    } else {
        Classification::Library
    };
    let mut component = Component::new(kind, &package.name, &version, Some(reference(package)));
    component.purl = Some(Purl::new("cargo", &package.name, &version).context("a package's URL")?);
    component.description = package.description.as_deref().map(NormalizedString::new);
    let license = package.license.as_deref().map(|license| license.replace('/', " OR "));
    let license = license.and_then(|license| SpdxExpression::try_from(license).ok());
    component.licenses = license.map(|license| Licenses(vec![LicenseChoice::Expression(license)]));
    Ok(component)
}

/// How other entries name a package: nothing of where it lies.
fn reference(package: &Package) -> String {
    format!("{}@{}", package.name, package.version)
}
