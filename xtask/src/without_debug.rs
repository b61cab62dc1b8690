//! Takes out of the kernel programs' objects what no loader needs: DWARF, three quarters of them, of which aya would look at every relocation.
//!
//! BTF stays, which the kernel is given with the programs: types and source lines.

use anyhow::{Context as _, Result};
use object::build::elf::{Builder, SectionData};
use object::elf;

/// The names of what goes: DWARF's sections, and their relocations.
const DEBUG: [&str; 2] = [".debug_", ".rel.debug_"];

/// The object `whole`, an ELF file, without them.
///
/// # Errors
/// Where it is no such file.
pub(crate) fn without_debug(whole: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(whole).context("no ELF file")?;
    let mut has_names = false;
    for section in &mut builder.sections {
        let name = section.name.to_string();
        section.delete = DEBUG.iter().any(|debug| name.starts_with(debug));
        has_names |= matches!(section.data, SectionData::SectionString);
    }
    // The linker has the names of sections and symbols in one table, which the writer does not.
    if !has_names {
        let names = builder.sections.add();
        names.name = ".shstrtab".into();
        names.sh_type = elf::SHT_STRTAB;
        names.data = SectionData::SectionString;
    }
    builder.delete_orphans();
    let mut stripped = Vec::new();
    builder.write(&mut stripped).context("cannot be written")?;
    Ok(stripped)
}

#[cfg(test)]
mod tests {
    use object::write::{Object, Relocation, Symbol, SymbolSection};
    use object::{
        Architecture, BinaryFormat, Endianness, Object as _, ObjectSection as _, ObjectSymbol as _,
        RelocationFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope,
    };

    use super::*;

    /// A program that refers to a map, with its BTF, and DWARF that refers to itself.
    fn program() -> Vec<u8> {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
        let classifier = object.add_section(Vec::new(), b"classifier".to_vec(), SectionKind::Text);
        object.append_section_data(classifier, &[0x95, 0, 0, 0, 0, 0, 0, 0], 8);
        let maps = object.add_section(Vec::new(), b"maps".to_vec(), SectionKind::Data);
        object.append_section_data(maps, &[1; 28], 8);
        let btf = object.add_section(Vec::new(), b".BTF".to_vec(), SectionKind::Other);
        object.append_section_data(btf, &[0x9f, 0xeb, 1, 0], 4);
        let debug = object.add_section(Vec::new(), b".debug_info".to_vec(), SectionKind::Debug);
        object.append_section_data(debug, &[7; 64], 1);
        let map = object.add_symbol(Symbol {
            name: b"PORTS".to_vec(),
            value: 0,
            size: 28,
            kind: SymbolKind::Data,
            scope: SymbolScope::Linkage,
            weak: false,
            section: SymbolSection::Section(maps),
            flags: SymbolFlags::None,
        });
        let of_debug = object.section_symbol(debug);
        for (section, symbol) in [(classifier, map), (debug, of_debug)] {
            let flags = RelocationFlags::Elf { r_type: elf::R_BPF_64_64 };
            object.add_relocation(section, Relocation { offset: 0, symbol, addend: 0, flags }).unwrap();
        }
        object.write().unwrap()
    }

    #[test]
    fn debug_sections_go_and_what_a_loader_needs_stays() {
        let whole = program();
        let stripped = without_debug(&whole).unwrap();
        assert!(stripped.len() < whole.len());
        let file = object::File::parse(&stripped[..]).unwrap();
        let names: Vec<_> = file.sections().map(|section| section.name().unwrap().to_owned()).collect();
        assert!(!names.iter().any(|name| name.contains("debug")), "{names:?}");
        let data = |name: &str| file.section_by_name(name).unwrap().data().unwrap();
        assert_eq!(data("classifier"), [0x95, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(data(".BTF"), [0x9f, 0xeb, 1, 0]);
        let classifier = file.section_by_name("classifier").unwrap();
        let refers: Vec<_> = classifier.relocations().map(|(_, relocation)| relocation.target()).collect();
        let [object::RelocationTarget::Symbol(symbol)] = refers[..] else { panic!("{refers:?}") };
        assert_eq!(file.symbol_by_index(symbol).unwrap().name(), Ok("PORTS"));
    }

    #[test]
    fn what_is_no_object_is_refused() {
        assert!(without_debug(b"not an ELF file").is_err());
    }
}
