//! The agent's state files: any bytes are a record or are refused, and what was read is written as it was.
#![no_main]
#![allow(clippy::unwrap_used, reason = "a target that panics has found something")]

use libfuzzer_sys::fuzz_target;
use shunt_agent::state::Record;

fuzz_target!(|file: &[u8]| {
    if let Ok(record) = Record::read(file) {
        assert_eq!(Record::read(&record.write().unwrap()).unwrap(), record);
    }
});
