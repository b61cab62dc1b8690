//! What a program is built for, and whether it runs where nothing else is.

use std::fmt;

use anyhow::{Context, Result, bail};
use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, FileKind};
use oci_spec::image::Arch;

/// A processor that images are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// `x86_64`.
    Amd64,
    /// `aarch64`.
    Arm64,
}

impl Architecture {
    /// Its name in images' configurations.
    pub(crate) fn of_image(self) -> Arch {
        match self {
            Self::Amd64 => Arch::Amd64,
            Self::Arm64 => Arch::ARM64,
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of_image())
    }
}

/// The processor that a program is built for.
///
/// # Errors
/// It is no program of Linux, is for another processor, or wants an interpreter (`ld.so`), which no image of ours has.
pub(crate) fn architecture(program: &[u8]) -> Result<Architecture> {
    if FileKind::parse(program).context("it is no program")? != FileKind::Elf64 {
        bail!("it is no 64-bit ELF file");
    }
    let header = FileHeader64::<Endianness>::parse(program).context("its header cannot be read")?;
    let endian = header.endian().context("its byte order is unknown")?;
    let segments = header.program_headers(endian, program).context("its segments cannot be read")?;
    if segments.iter().any(|segment| segment.p_type(endian) == PT_INTERP) {
        bail!("it is linked dynamically: no image has its libraries (cargo xtask build says why it is)");
    }
    match header.e_machine(endian) {
        EM_X86_64 => Ok(Architecture::Amd64),
        EM_AARCH64 => Ok(Architecture::Arm64),
        other => bail!("no image is made for its processor ({other} of elf.h)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_wants_libraries_and_a_text_are_refused() {
        // The tests themselves are linked as the host's programs are.
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let error = architecture(&own).unwrap_err().to_string();
        assert!(error.contains("linked dynamically"), "{error}");
        assert!(architecture(b"#!/bin/sh\n").unwrap_err().to_string().contains("no program"));
    }
}
