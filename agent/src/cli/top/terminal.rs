//! The terminal while it is the program's: it is given back however the program ends.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::process;
use std::sync::Once;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// The exit code of a program that has panicked.
const PANICKED: i32 = 101;

/// The screen to draw on; dropping it gives the terminal back.
#[derive(Debug)]
pub(super) struct Taken(pub(super) Terminal<CrosstermBackend<Stdout>>);

impl Taken {
    /// Takes the terminal of standard output.
    ///
    /// # Errors
    /// It refuses.
    pub(super) fn take() -> io::Result<Self> {
        give_back_when_panicking();
        enable_raw_mode()?;
        let taken = execute!(stdout(), EnterAlternateScreen);
        let taken = taken.and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        taken.map(Self).inspect_err(|_| give_back())
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back as it was. May be done twice.
pub(super) fn give_back() {
    // A terminal that is gone has nothing to be given back.
    let _gone = disable_raw_mode();
    let _gone = execute!(stdout(), LeaveAlternateScreen, Show);
}

/// A panic of any thread ends the program, with its message on the terminal as it was.
fn give_back_when_panicking() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back();
            tell(panic);
            process::exit(PANICKED);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set for [`panics_on_a_thread_of_its_own`] by the test that runs it.
    const IN_A_TERMINAL: &str = "SHUNT_TEST_IN_A_TERMINAL";

    #[test]
    #[ignore = "run in a terminal by the test below"]
    fn panics_on_a_thread_of_its_own() {
        if std::env::var_os(IN_A_TERMINAL).is_none() {
            return;
        }
        let _taken = Taken::take().unwrap();
        std::thread::spawn(|| panic!("as it happens")).join().unwrap_err();
    }

    #[test]
    fn a_panic_of_any_thread_gives_the_terminal_back_and_is_read_on_it() {
        let directory = tempfile::tempdir().unwrap();
        let terminal = shunt_lab::Terminal::open(directory.path(), (120, 30)).unwrap();
        let program = std::env::current_exe().unwrap();
        let test = "panics_on_a_thread_of_its_own --ignored --nocapture";
        terminal
            .enter(&format!("{IN_A_TERMINAL}=1 {} {test}; echo ended $?; stty -a", program.display()))
            .unwrap();
        let text = terminal.until("the end", |text| text.contains("icanon")).unwrap();
        assert!(text.contains("as it happens") && text.contains("ended 101"), "{text}");
        assert!(!text.contains("-icanon") && !text.contains("-echo "), "{text}");
        assert_eq!(terminal.state().unwrap(), (false, true));
    }
}
