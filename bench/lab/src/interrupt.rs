//! Ctrl-C as a flag, so that values are dropped in their order and clean up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Set by SIGINT, SIGTERM and SIGHUP once [`Interrupt::install`] has run.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes the signals over.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn install() -> Result<Self> {
        let interrupt = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.flag)).context("take a signal over")?;
        }
        Ok(interrupt)
    }

    /// Whether one of the signals has come.
    pub fn raised(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// To be asked between steps, with `?`.
    ///
    /// # Errors
    /// When one of the signals has come.
    pub fn check(&self) -> Result<()> {
        if self.raised() {
            bail!("interrupted");
        }
        Ok(())
    }
}
