//! The program of an uplink's driver.

use aya::maps::DevMapHash;
use aya::programs::{TestRun, TestRunOptions, Xdp};
use shunt_agent::datapath::loader::uninterrupted;

use super::Kernel;
use crate::golden::uplinks;

impl Kernel {
    /// What the program of a driver does with a frame: its action, and what it leaves.
    pub(crate) fn drive(&mut self, here: u32, frame: &[u8]) -> (u32, Vec<u8>) {
        if self.driver().fd().is_err() {
            let driver = self.driver();
            uninterrupted(|| driver.load()).expect("the verifier takes it");
            let mut nics: DevMapHash<_> = self.map("NICS").try_into().expect("NICS");
            for ifindex in uplinks::NICS {
                nics.insert(ifindex, ifindex, None, 0).expect("an uplink");
            }
        }
        // `struct xdp_md` (linux/bpf.h): where the frame begins and ends, and by which interface it came.
        let fields = [0, frame.len() as u32, 0, here, 0, 0];
        let context: Vec<u8> = fields.into_iter().flat_map(u32::to_ne_bytes).collect();
        let mut bytes = vec![0u8; frame.len() + 64];
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = Some(&mut bytes);
        options.ctx_in = Some(&context);
        let run = self.driver().test_run(options).unwrap_or_else(|error| panic!("{frame:02x?}: {error:?}"));
        bytes.truncate(run.data_size_out as usize);
        (run.return_value, bytes)
    }

    fn driver(&mut self) -> &mut Xdp {
        let program = self.ebpf.program_mut("from_nic").expect("the program of drivers");
        program.try_into().expect("a program of XDP")
    }
}
