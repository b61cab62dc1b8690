//! Files that import each other in a circle: none of them can be read, moved or changed without the others.
//!
//! A file imports another one where it names something that is defined there, in a `use` or in place. What a file hands on
//! (`pub use`) is its definer's, and a module's declaration (`mod`) is no import. Tests are not looked at.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, ItemUse, Path, UseTree, Visibility};

use super::finding::Finding;
use super::source::Source;

/// A module's name from its crate's root, which has none.
type Module = Vec<String>;

pub(super) fn closed(sources: &[Source]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, House<'_>> = BTreeMap::new();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust() && !is_test(&source.path)) {
        let Some((folder, module)) = module(&source.path) else { continue };
        match syn::parse_file(&source.text) {
            Ok(file) => _ = crates.entry(folder).or_default().insert(module, Room::new(source, &file)),
            Err(error) => findings.push(Finding::in_file(source, format!("cannot be parsed: {error}"))),
        }
    }
    findings.extend(crates.values().flat_map(circles));
    findings
}

fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/")
}

/// The crate's folder of a source file, and its module. A binary beside a library is a crate of its own and imports nothing by `crate`.
fn module(path: &str) -> Option<(&str, Module)> {
    let (folder, file) = path.split_once("/src/")?;
    let names = file.strip_suffix(".rs")?.split('/').map(str::to_owned);
    let mut names: Module = names.collect();
    names.pop_if(|last| last == "mod");
    names.pop_if(|last| last == "lib");
    Some((folder, names))
}

/// The files of a crate.
type House<'a> = BTreeMap<Module, Room<'a>>;

/// What a file says of others.
struct Room<'a> {
    source: &'a Source,
    /// What it names, from where it stands.
    named: BTreeSet<Vec<String>>,
    /// What it hands on, by the name that it has here; `*` for all of a module.
    handed_on: Vec<(String, Vec<String>)>,
    /// The names of its own items.
    defines: BTreeSet<String>,
}

impl<'a> Room<'a> {
    fn new(source: &'a Source, file: &File) -> Self {
        let defines = file.items.iter().filter_map(name).collect();
        let mut room = Self { source, named: BTreeSet::new(), handed_on: Vec::new(), defines };
        room.visit_file(file);
        room
    }

    fn take(&mut self, tree: &UseTree, before: &[String], is_handed_on: bool) {
        let with = |name: String| [before, &[name]].concat();
        let (name, path) = match tree {
            UseTree::Path(path) => {
                return self.take(&path.tree, &with(path.ident.to_string()), is_handed_on);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.take(item, before, is_handed_on));
            }
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().cloned().unwrap_or_default(), before.to_vec())
            }
            UseTree::Name(name) => (name.ident.to_string(), with(name.ident.to_string())),
            UseTree::Rename(rename) => (rename.rename.to_string(), with(rename.ident.to_string())),
            UseTree::Glob(_) => ("*".to_owned(), before.to_vec()),
        };
        if is_handed_on {
            self.handed_on.push((name, path));
        } else {
            self.named.insert(path);
        }
    }
}

/// An item's name, unless it is a module or an import.
fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

impl Visit<'_> for Room<'_> {
    fn visit_item(&mut self, item: &Item) {
        let attributes: &[Attribute] = match item {
            Item::Use(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        self.take(&item.tree, &[], !matches!(item.vis, Visibility::Inherited));
    }

    /// Who may see an item is no import.
    fn visit_visibility(&mut self, _: &Visibility) {}

    fn visit_path(&mut self, path: &Path) {
        self.named.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

/// The module in which something is defined that is named at a module.
fn defined<'a>(house: &'a House<'a>, at: &Module, path: &[String], depth: usize) -> Option<&'a Module> {
    const MOST_HANDS: usize = 8;
    let (mut module, mut rest) = match path.first()?.as_str() {
        "crate" => (Module::new(), &path[1..]),
        "self" => (at.clone(), &path[1..]),
        "super" => (at.split_last()?.1.to_vec(), &path[1..]),
        first if path.len() > 1 && house.contains_key(&[at.as_slice(), &[first.to_owned()]].concat()) => {
            (at.clone(), path)
        }
        _ => return None,
    };
    while let Some((first, others)) = rest.split_first() {
        match first.as_str() {
            "super" => _ = module.pop(),
            name => {
                let child = [module.as_slice(), &[name.to_owned()]].concat();
                if !house.contains_key(&child) {
                    break;
                }
                module = child;
            }
        }
        rest = others;
    }
    let (module, room) = house.get_key_value(&module)?;
    let Some(name) = rest.first().filter(|name| depth < MOST_HANDS && !room.defines.contains(*name)) else {
        return Some(module);
    };
    let mut handed_on = room.handed_on.iter().filter_map(|(known, path)| match known.as_str() {
        "*" => {
            let path = [path.as_slice(), std::slice::from_ref(name)].concat();
            defined(house, module, &path, depth + 1).filter(|definer| house[*definer].defines.contains(name))
        }
        known if known == name => defined(house, module, path, depth + 1),
        _ => None,
    });
    Some(handed_on.next().unwrap_or(module))
}

/// The circles of a crate, each once, told at its first file.
fn circles<'a>(house: &'a House<'a>) -> Vec<Finding> {
    let imports: BTreeMap<&Module, BTreeSet<&Module>> = house
        .iter()
        .map(|(module, room)| {
            let named = room.named.iter().filter_map(|path| defined(house, module, path, 0));
            (module, named.filter(|other| *other != module).collect())
        })
        .collect();
    let reached: BTreeMap<_, _> = house.keys().map(|module| (module, reachable(&imports, module))).collect();
    let with = |module: &&'a Module| {
        let in_circle = reached[module].iter().copied().filter(|other| reached[other].contains(module));
        in_circle.collect::<BTreeSet<_>>()
    };
    let circles: BTreeSet<BTreeSet<&Module>> = imports.keys().map(with).filter(|all| all.len() > 1).collect();
    circles
        .into_iter()
        .filter_map(|circle| {
            let path = |module: &Module| house[module].source.path.as_str();
            let ties = circle.iter().map(|module| {
                let to = imports[module].intersection(&circle).map(|to| path(to));
                format!("{} imports {}", path(module), to.collect::<Vec<_>>().join(" and "))
            });
            let first = house.get(*circle.first()?)?;
            let told = ties.collect::<Vec<_>>().join("; ");
            Some(Finding::in_file(first.source, format!("is in a circle of files: {told}")))
        })
        .collect()
}

fn reachable<'a>(
    imports: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
    from: &'a Module,
) -> BTreeSet<&'a Module> {
    let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(module) = left.pop() {
        left.extend(imports[module].iter().filter(|next| reached.insert(**next)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::*;

    fn told(files: &[(&str, &str)]) -> Vec<String> {
        let source =
            |(path, text): &(&str, &str)| Source { path: (*path).to_owned(), text: (*text).to_owned() };
        let sources: Vec<_> = files.iter().map(source).collect();
        closed(&sources).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_circle_is_told_with_what_ties_it() {
        let told = told(&[
            ("a/src/lib.rs", "mod one; mod two; mod three;"),
            ("a/src/one.rs", "use crate::two::{Thing, other::X};"),
            ("a/src/two/mod.rs", "pub(crate) mod other; fn f() { super::three::call() }"),
            ("a/src/two/other.rs", "struct X;"),
            ("a/src/three.rs", "use super::one;"),
        ]);
        let ties = "a/src/one.rs imports a/src/two/mod.rs; a/src/three.rs imports a/src/one.rs; \
                    a/src/two/mod.rs imports a/src/three.rs";
        assert_eq!(told, [format!("is in a circle of files: {ties}")]);
    }

    #[test]
    fn what_is_handed_on_is_its_definers() {
        let files = |import| {
            [
                ("a/src/lib.rs", "mod face;"),
                (
                    "a/src/face/mod.rs",
                    "mod one; mod two; pub use self::one::{One as Renamed}; pub use two::*;",
                ),
                ("a/src/face/one.rs", import),
                ("a/src/face/two.rs", "use super::Renamed; pub struct Two;"),
            ]
        };
        assert_eq!(told(&files("use crate::face::Two;")).len(), 1);
        assert_eq!(told(&files("use crate::face::Other;")), [""; 0]);
    }

    #[test]
    fn tests_and_what_is_declared_are_no_imports() {
        let files = [
            ("a/src/lib.rs", "mod one; mod two;"),
            ("a/src/one.rs", "use crate::two; #[cfg(test)] mod tests { use crate::lib; }"),
            ("a/src/two.rs", "#[cfg(test)] use crate::one; #[cfg(test)] mod tests { use crate::one; }"),
            ("a/src/one/tests.rs", "use crate::two;"),
        ];
        assert_eq!(told(&files), [""; 0]);
    }
}
