//! A real terminal for programs that want one: a shell in tmux, which draws what a person would see.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::{patience, run};

/// How long something may take to be seen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// A shell in a terminal of its own. Dropping it ends both.
#[derive(Debug)]
pub struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// Opens one with as many columns and lines; its socket is in the directory.
    ///
    /// # Errors
    /// tmux is missing, or refuses.
    pub fn open(directory: &Path, (columns, lines): (u16, u16)) -> Result<Self> {
        let terminal = Self { socket: directory.join("tmux") };
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let shell = "exec env -u ENV PS1='$ ' /bin/sh";
        terminal.tmux(&["new-session", "-d", "-x", &columns, "-y", &lines, shell])?;
        Ok(terminal)
    }

    /// Types a line for the shell.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn enter(&self, line: &str) -> Result<()> {
        self.tmux(&["send-keys", "-l", line])?;
        self.press(&["Enter"])
    }

    /// Presses keys, by their names in tmux.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn press(&self, keys: &[&str]) -> Result<()> {
        self.tmux(&[&["send-keys"], keys].concat()).map(drop)
    }

    /// Gives it another size.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn resize(&self, (columns, lines): (u16, u16)) -> Result<()> {
        let (columns, lines) = (columns.to_string(), lines.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &lines]).map(drop)
    }

    /// What is on it.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn text(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Whether a program has the whole of it (the alternate screen), and whether there is a cursor.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn state(&self) -> Result<(bool, bool)> {
        let flags = self.tmux(&["display-message", "-p", "#{alternate_on}#{cursor_flag}"])?;
        let mut flags = flags.trim().chars().map(|flag| flag == '1');
        Ok((flags.next().unwrap_or_default(), flags.next().unwrap_or_default()))
    }

    /// Waits until what is on it is as wanted.
    ///
    /// # Errors
    /// It is not in time; with what is on it.
    pub fn until(&self, what: &str, is: impl Fn(&str) -> bool) -> Result<String> {
        let begun = Instant::now();
        loop {
            let text = self.text()?;
            if is(&text) {
                return Ok(text);
            }
            if begun.elapsed() > patience(PATIENCE) {
                bail!("{what}: not on the terminal\n{text}");
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let socket = self.socket.to_string_lossy();
        run("tmux", &[&["-u", "-f", "/dev/null", "-S", &*socket], arguments].concat())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // One that has ended by itself is gone already.
        drop(self.tmux(&["kill-server"]));
    }
}
