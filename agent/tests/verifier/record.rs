//! What each program took on each kernel when somebody last looked: a file for each series of kernels, beside this one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// Set, it has the record of the running kernel written anew: a change of it is then part of a change of the programs.
const RENEW: &str = "SHUNT_RENEW_BUDGETS";

/// The verifier gives up after a million instructions. A program that comes near is refused by the next kernel.
const LIMIT: u32 = 1_000_000 / 10 * 3;

/// A patch of a kernel, or a compiler's release, may shift some instructions about.
const TOLERATED_PERCENT: u32 = 5;
const TOLERATED: u32 = 64;

/// A kernel that nobody has recorded may take that much more than the one that takes most.
const UNKNOWN_PERCENT: u32 = 50;

/// A set of programs, and the program.
pub(crate) type Loaded = (String, String);

/// What a program takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Instructions that the verifier walks.
    pub(crate) walked: u32,
    /// Bytes of machine code on x86-64.
    pub(crate) code: u32,
}

impl Budget {
    fn with_more(self, percent: u32) -> Self {
        let more = |figure: u32| figure + (figure * percent / 100).max(TOLERATED);
        Self { walked: more(self.walked), code: more(self.code) }
    }

    fn or_greater(self, other: Self) -> Self {
        Self { walked: self.walked.max(other.walked), code: self.code.max(other.code) }
    }

    fn exceeds(self, other: Self) -> bool {
        self.walked > other.walked.min(LIMIT) || self.code > other.code
    }
}

/// Holds what the programs take on this kernel against its record, or where it has none against all the others.
pub(crate) fn check(now: BTreeMap<Loaded, Budget>) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel has a name");
    let release = release.trim();
    let series = release.split('.').take(2).collect::<Vec<_>>().join(".");
    let path = directory().join(format!("{series}.txt"));
    if std::env::var_os(RENEW).is_some() {
        fs::write(&path, written(&series, &now)).expect("the record can be written");
        return;
    }
    let most = match fs::read_to_string(&path) {
        Ok(text) => allowed(&text, TOLERATED_PERCENT),
        Err(_) => of_all_kernels(),
    };
    let worse: Vec<String> = now
        .iter()
        .filter_map(|(program, now)| match most.get(program) {
            None => Some(format!("{program:?}: not in the record")),
            Some(most) if now.exceeds(*most) => Some(format!("{program:?}: {now:?}, at most {most:?}")),
            Some(_) => None,
        })
        .collect();
    assert!(
        worse.is_empty(),
        "programs take more of the verifier of Linux {release} than they may; where that is meant, {RENEW}=1 writes {}:\n{}",
        path.display(),
        worse.join("\n")
    );
}

fn of_all_kernels() -> BTreeMap<Loaded, Budget> {
    let mut most = BTreeMap::<_, Budget>::new();
    for entry in fs::read_dir(directory()).expect("the records' folder").map(Result::unwrap) {
        if entry.path().extension().is_some_and(|extension| extension == "txt") {
            let text = fs::read_to_string(entry.path()).expect("a record can be read");
            for (program, budget) in allowed(&text, UNKNOWN_PERCENT) {
                let greatest = most.entry(program).or_default();
                *greatest = greatest.or_greater(budget);
            }
        }
    }
    most
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/verifier")
}

fn written(series: &str, budgets: &BTreeMap<Loaded, Budget>) -> String {
    let mut text = format!(
        "# Linux {series}: programs for, program, instructions that the verifier walks, bytes of machine code\n"
    );
    for ((set, program), budget) in budgets {
        let _ = writeln!(text, "{set:<10} {program:<14} {:>7} {:>6}", budget.walked, budget.code);
    }
    text
}

fn allowed(record: &str, percent: u32) -> BTreeMap<Loaded, Budget> {
    let lines = record.lines().filter(|line| !line.starts_with('#'));
    let entries = lines.map(|line| {
        let [set, program, walked, code] = line
            .split_whitespace()
            .collect::<Vec<_>>()
            .try_into()
            .expect("four words in each line of a record");
        let [walked, code] = [walked, code].map(|figure: &str| figure.parse().expect("a number"));
        ((set.to_owned(), program.to_owned()), Budget { walked, code }.with_more(percent))
    });
    entries.collect()
}
