//! A program's functions, and in which order they were first run.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use object::{Object as _, ObjectSymbol as _, SymbolKind};

/// The functions of a program that is always at the same address.
#[derive(Debug)]
pub(crate) struct Functions {
    /// In the order of their addresses.
    all: Vec<Function>,
    /// Indexes of `all`.
    order: Vec<usize>,
}

#[derive(Debug)]
struct Function {
    begin: u64,
    end: u64,
    /// The linker may have taken several for one.
    names: Vec<String>,
    was_visited: bool,
}

impl Functions {
    /// Reads the symbols.
    ///
    /// # Errors
    /// When the file is no program, or has no symbols.
    pub(crate) fn of(program: &Path) -> Result<Self> {
        let content = std::fs::read(program).with_context(|| format!("read {}", program.display()))?;
        let file = object::File::parse(&*content).with_context(|| format!("read {}", program.display()))?;
        let text = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
        let mut symbols: Vec<_> = text.collect();
        symbols.sort_by_key(|symbol| symbol.address());
        let mut all: Vec<Function> = Vec::new();
        for symbol in symbols {
            let (begin, name) = (symbol.address(), symbol.name().context("a symbol's name")?.to_owned());
            match all.last_mut().filter(|last| last.begin == begin) {
                Some(same) => same.names.push(name),
                None => {
                    let end = begin + symbol.size();
                    all.push(Function { begin, end, names: vec![name], was_visited: false });
                }
            }
        }
        ensure!(!all.is_empty(), "{} has no symbols", program.display());
        Ok(Self { all, order: Vec::new() })
    }

    /// Notes that the instruction at `address` is run.
    pub(crate) fn visit(&mut self, address: u64) {
        let Some(at) = self.all.partition_point(|function| function.begin <= address).checked_sub(1) else {
            return;
        };
        let function = &mut self.all[at];
        if address < function.end && !function.was_visited {
            function.was_visited = true;
            self.order.push(at);
        }
    }

    /// The names of those that were run, in the order in which each was first.
    pub(crate) fn visited(&self) -> impl Iterator<Item = &str> {
        self.order.iter().flat_map(|at| &self.all[*at].names).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_once_and_in_the_order_in_which_they_are_run() {
        let function = |begin, end, name: &str| Function {
            begin,
            end,
            names: vec![name.to_owned()],
            was_visited: false,
        };
        let all = vec![function(10, 20, "a"), function(20, 25, "b"), function(30, 40, "c")];
        let mut functions = Functions { all, order: Vec::new() };
        for address in [9, 39, 30, 25, 29, 19, 10, 40, 99] {
            functions.visit(address);
        }
        assert_eq!(functions.visited().collect::<Vec<_>>(), ["c", "a"]);
    }

    #[test]
    fn this_program_has_functions_and_what_is_none_says_so() {
        assert!(Functions::of(&std::env::current_exe().unwrap()).is_ok());
        assert!(Functions::of(Path::new("/proc/version")).is_err());
    }
}
