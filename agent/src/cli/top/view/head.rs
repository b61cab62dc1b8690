//! The lines above and below the tables.

use std::time::Instant;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use crate::cli::table::grouped;
use crate::cli::top::escape::escape;
use crate::cli::top::rates::{PortRates, Rates, Readout};
use crate::cli::top::screen::Screen;
use crate::cli::top::units::known;

const WRONG: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// What the node does, and what is wrong.
pub(super) fn lines(screen: &Screen, readout: Option<&Readout>, now: Instant) -> Vec<Line<'static>> {
    let first = readout.map_or_else(|| "shunt".to_owned(), node);
    let first = if screen.is_paused { format!("PAUSED  {first}") } else { first };
    vec![Line::styled(first, Modifier::BOLD), wrong(screen, readout, now)]
}

fn node(readout: &Readout) -> String {
    let sum = |way: fn(&PortRates) -> Option<Rates>| {
        let known_rates = readout.ports.iter().filter_map(way).map(|rates| rates.bits);
        known((readout.seconds > 0.0).then(|| known_rates.sum()))
    };
    format!(
        "shunt {}  {}  sent {}b/s  received {}b/s  over {:.1} s",
        escape(&readout.version),
        attachments(readout.ports.len()),
        sum(|port| port.sent),
        sum(|port| port.received),
        readout.seconds,
    )
}

fn attachments(count: usize) -> String {
    if count == 1 { "1 attachment".to_owned() } else { format!("{} attachments", grouped(count as u64)) }
}

fn wrong(screen: &Screen, readout: Option<&Readout>, now: Instant) -> Line<'static> {
    if let Some(failure) = &screen.failure {
        let age = screen.age(now).map_or_else(String::new, |age| format!("figures of {age} s ago: "));
        return Line::styled(format!("NO ANSWER  {age}{}", escape(failure)), WRONG);
    }
    match readout {
        None => Line::from("waiting for the agent"),
        Some(readout) if readout.healthy => Line::from("healthy"),
        Some(readout) => Line::styled(format!("NOT HEALTHY  {}", escape(&readout.reasons.join("; "))), WRONG),
    }
}

/// The filter as it is typed, or how the ports are chosen and sorted.
pub(super) fn foot(screen: &Screen) -> Line<'static> {
    let selection = &screen.selection;
    if screen.is_typing {
        return Line::from(format!("/{}_", escape(&selection.filter)));
    }
    let mut foot = format!("by {}", selection.key.name());
    if selection.is_reversed {
        foot.push_str(", reversed");
    }
    if selection.throttled_only {
        foot.push_str(", throttled only");
    }
    if !selection.filter.is_empty() {
        foot.push_str(&format!(", filter {}", escape(&selection.filter)));
    }
    Line::styled(format!("{foot}  h: keys  q: quit"), Modifier::DIM)
}
