//! Draws the screen: a head, uplinks, ports, drops and a foot, each as far as the terminal has room.

mod columns;
mod head;
mod tables;

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::input::KEYS;
use super::rates::Readout;
use super::screen::Screen;

/// Lines of the head.
const HEAD: u16 = 2;

/// Lines that ports keep, their heads included, before others have any.
const PORTS: u16 = 6;

/// Reasons that are shown, at most.
const DROPS: usize = 6;

/// Draws what there is at this moment.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen, now: Instant) {
    // What is shown is taken out while the screen learns how much of it there is room for.
    let readout = screen.readout.take();
    let [head, middle, foot] =
        Layout::vertical([Constraint::Length(HEAD), Constraint::Fill(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(head::lines(screen, readout.as_ref(), now)), head);
    frame.render_widget(Paragraph::new(head::foot(screen)), foot);
    if screen.shows_keys {
        frame.render_widget(Paragraph::new(keys()), middle);
    } else if let Some(readout) = &readout {
        body(frame, screen, readout, middle);
    }
    screen.readout = readout;
}

fn body(frame: &mut Frame<'_>, screen: &mut Screen, readout: &Readout, area: Rect) {
    let spare = area.height.saturating_sub(PORTS);
    let uplinks = table_height(readout.uplinks.len() * 2).min(spare);
    let drops = table_height(readout.drops.len().min(DROPS)).min(spare - uplinks);
    // A table without a row says nothing.
    let lengths = [uplinks, drops].map(|height| if height < 2 { 0 } else { height });
    let [uplinks, ports, drops] = Layout::vertical([
        Constraint::Length(lengths[0]),
        Constraint::Fill(1),
        Constraint::Length(lengths[1]),
    ])
    .areas(area);
    tables::uplinks(frame, &readout.uplinks, uplinks);
    tables::ports(frame, screen, &readout.ports, ports);
    tables::drops(frame, &readout.drops, drops);
}

/// Lines of a table with as many rows, its heads included.
fn table_height(rows: usize) -> u16 {
    if rows == 0 { 0 } else { u16::try_from(rows + 1).unwrap_or(u16::MAX) }
}

fn keys() -> Vec<Line<'static>> {
    KEYS.map(|(keys, what)| Line::from(format!("{keys:<27} {what}"))).to_vec()
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
