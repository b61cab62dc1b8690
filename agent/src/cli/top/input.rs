//! What each key does.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::screen::Screen;

/// The longest filter.
const LONGEST: usize = 64;

/// The keys, as they are told on the screen.
pub(super) const KEYS: [(&str, &str); 8] = [
    ("q", "quit"),
    ("s S", "sort by the next or the previous figure"),
    ("r", "reverse the order"),
    ("/", "filter by name, interface or drop reason; Enter keeps it, Esc drops it"),
    ("t", "only throttled ones"),
    ("p Space", "pause, and go on"),
    ("Up Down PgUp PgDn Home End", "scroll"),
    ("h ?", "these keys"),
];

/// What follows a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Quit,
}

/// Does what a key says.
pub(super) fn press(screen: &mut Screen, key: KeyEvent) -> Next {
    // In raw mode the terminal sends no signal for it.
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { Next::Quit } else { Next::GoOn };
    }
    if screen.is_typing {
        type_in(screen, key.code);
        return Next::GoOn;
    }
    let page = screen.page.max(1).cast_signed();
    match key.code {
        KeyCode::Char('q') => return Next::Quit,
        KeyCode::Char('s') => screen.selection.key = screen.selection.key.step(1),
        KeyCode::Char('S') => screen.selection.key = screen.selection.key.step(-1),
        KeyCode::Char('r') => screen.selection.is_reversed ^= true,
        KeyCode::Char('t') => screen.selection.throttled_only ^= true,
        KeyCode::Char('p' | ' ') => screen.is_paused ^= true,
        KeyCode::Char('h' | '?') => screen.shows_keys ^= true,
        KeyCode::Char('/') => screen.is_typing = true,
        KeyCode::Esc => {
            screen.shows_keys = false;
            screen.selection.filter.clear();
        }
        KeyCode::Up => screen.scroll(-1),
        KeyCode::Down => screen.scroll(1),
        KeyCode::PageUp => screen.scroll(-page),
        KeyCode::PageDown => screen.scroll(page),
        KeyCode::Home => screen.scroll(isize::MIN),
        KeyCode::End => screen.scroll(isize::MAX),
        _ => {}
    }
    Next::GoOn
}

fn type_in(screen: &mut Screen, key: KeyCode) {
    let filter = &mut screen.selection.filter;
    match key {
        KeyCode::Enter => screen.is_typing = false,
        KeyCode::Esc => {
            filter.clear();
            screen.is_typing = false;
        }
        KeyCode::Backspace => drop(filter.pop()),
        KeyCode::Char(letter) if filter.len() < LONGEST => filter.push(letter),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::top::selection::Key;

    fn press_all(screen: &mut Screen, keys: &[KeyCode]) -> Next {
        let pressed = keys.iter().map(|key| press(screen, KeyEvent::from(*key)));
        pressed.last().unwrap()
    }

    fn letters(text: &str) -> Vec<KeyCode> {
        text.chars().map(KeyCode::Char).collect()
    }

    #[test]
    fn letters_sort_reverse_and_pause_and_q_quits() {
        let mut screen = Screen::default();
        assert_eq!(press_all(&mut screen, &letters("ssSrtp")), Next::GoOn);
        assert_eq!(screen.selection.key, Key::Sent);
        assert!(screen.selection.is_reversed && screen.selection.throttled_only && screen.is_paused);
        assert_eq!(press_all(&mut screen, &letters("rt ")), Next::GoOn);
        assert!(!screen.selection.is_reversed && !screen.selection.throttled_only && !screen.is_paused);
        assert_eq!(press_all(&mut screen, &letters("q")), Next::Quit);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(press(&mut screen, interrupt), Next::Quit);
    }

    #[test]
    fn a_filter_takes_every_letter_until_it_is_kept_or_dropped() {
        let mut screen = Screen::default();
        press_all(&mut screen, &letters("/quip"));
        press_all(&mut screen, &[KeyCode::Backspace, KeyCode::Enter]);
        assert_eq!((screen.selection.filter.as_str(), screen.is_typing), ("qui", false));
        assert!(!screen.is_paused);
        press_all(&mut screen, &letters(&format!("/{}", "x".repeat(1_000))));
        assert_eq!(screen.selection.filter.len(), LONGEST);
        press_all(&mut screen, &[KeyCode::Esc]);
        assert_eq!((screen.selection.filter.as_str(), screen.is_typing), ("", false));
    }

    #[test]
    fn scrolling_ends_at_both_ends() {
        let mut screen = Screen::default();
        screen.fit(100, 10);
        for (key, offset) in [
            (KeyCode::Up, 0),
            (KeyCode::PageDown, 10),
            (KeyCode::Down, 11),
            (KeyCode::End, 90),
            (KeyCode::PageUp, 80),
            (KeyCode::Home, 0),
        ] {
            press_all(&mut screen, &[key]);
            screen.fit(100, 10);
            assert_eq!(screen.offset, offset, "{key:?}");
        }
    }
}
