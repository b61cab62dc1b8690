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
    name: String,
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
        let functions =
            file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
        let functions = functions.filter_map(|symbol| {
            let (begin, name) = (symbol.address(), symbol.name().ok()?.to_owned());
            Some(Function { begin, end: begin + symbol.size(), name, was_visited: false })
        });
        let mut all: Vec<_> = functions.collect();
        ensure!(!all.is_empty(), "{} has no symbols", program.display());
        all.sort_by_key(|function| function.begin);
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
        self.order.iter().map(|at| self.all[*at].name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_once_and_in_the_order_in_which_they_are_run() {
        let function =
            |begin, end, name: &str| Function { begin, end, name: name.to_owned(), was_visited: false };
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
