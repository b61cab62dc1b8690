//! The cost of the pipelines in plain code, by golden packet: `cargo bench --package shunt-dataplane`. The tables are trees in
//! memory, slower than the kernel's maps, so only the difference between two commits says something.

#![allow(missing_docs, reason = "criterion's macros")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the golden packets are the tests'")]

#[path = "../tests/golden/mod.rs"]
mod golden;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use golden::case::all;
use golden::memory_tables::MemoryTables;

/// Packets that leave the tables as they were, except counters.
fn is_pure(case: &golden::case::Case) -> bool {
    case.flows == 0 && case.notes == 0 && case.lookups.is_empty() && case.charges.is_none()
}

fn pipelines(criterion: &mut Criterion) {
    for case in all().into_iter().filter(is_pure) {
        let tables = MemoryTables::of_world();
        let name = format!("{}/{}", case.entry.program(), case.name);
        criterion.bench_function(&name, |bencher| {
            bencher.iter_batched_ref(
                || case.packet.clone(),
                |packet| case.entry.travel(packet, case.here, case.missing, &tables),
                BatchSize::SmallInput,
            );
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).without_plots();
    targets = pipelines
}
criterion_main!(benches);
