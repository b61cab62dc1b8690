//! The tables of the screen.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Row, Table};

use super::columns::fitting;
use crate::cli::table::Align;
use crate::cli::top::cells::{DROP_HEADS, PORT_HEADS, UPLINK_HEADS, drop_cells, port_cells, uplink_cells};
use crate::cli::top::escape::cut;
use crate::cli::top::rates::{DropRate, PortRates, UplinkRates};
use crate::cli::top::screen::Screen;

const HEADS: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Widths of the columns of uplinks and of drops.
const UPLINKS: [u16; 6] = [15, 9, 9, 9, 9, 9];
const DROPS: [u16; 5] = [18, 13, 15, 9, 15];

pub(super) fn uplinks(frame: &mut Frame<'_>, uplinks: &[UplinkRates], area: Rect) {
    let rows = uplinks.iter().flat_map(uplink_cells).map(|cells| row(cells, &UPLINK_HEADS, Style::new()));
    let table = Table::new(rows, UPLINKS.map(Constraint::Length));
    frame.render_widget(table.header(heads(&UPLINK_HEADS)), area);
}

/// The ports that are chosen, from the screen's offset on.
pub(super) fn ports(frame: &mut Frame<'_>, screen: &mut Screen, ports: &[PortRates], area: Rect) {
    let shown = screen.selection.of(ports);
    let page = usize::from(area.height.saturating_sub(1));
    screen.fit(shown.len(), page);
    let columns = fitting(area.width);
    let aligned = |column: usize, text| aligned(text, PORT_HEADS[column].1);
    let rows = shown.iter().skip(screen.offset).take(page).map(|port| {
        let mut cells = port_cells(port);
        let cells = columns.iter().map(|(column, width)| {
            aligned(*column, cut(&std::mem::take(&mut cells[*column]), (*width).into()))
        });
        Row::new(cells.collect::<Vec<_>>()).style(style(port))
    });
    let heads = columns.iter().map(|(column, _)| aligned(*column, PORT_HEADS[*column].0.to_owned()));
    let heads = Row::new(heads.collect::<Vec<_>>()).style(HEADS);
    let widths = columns.iter().map(|(_, width)| Constraint::Length(*width));
    frame.render_widget(Table::new(rows, widths).header(heads), area);
}

pub(super) fn drops(frame: &mut Frame<'_>, drops: &[DropRate], area: Rect) {
    let most = usize::from(area.height.saturating_sub(1));
    let rows = drops.iter().take(most).map(|drop| {
        let style = if drop.rate.is_some_and(|rate| rate > 0.0) { Color::Red.into() } else { Style::new() };
        row(drop_cells(drop), &DROP_HEADS, style)
    });
    let table = Table::new(rows, DROPS.map(Constraint::Length));
    frame.render_widget(table.header(heads(&DROP_HEADS)), area);
}

/// Drops are more urgent than throttling.
fn style(port: &PortRates) -> Style {
    let rates = [port.sent, port.received];
    if rates.into_iter().flatten().any(|rates| rates.dropped > 0.0) {
        Color::Red.into()
    } else if port.throttled.is_empty() {
        Style::new()
    } else {
        Color::Yellow.into()
    }
}

fn heads<const N: usize>(heads: &[(&'static str, Align); N]) -> Row<'static> {
    row(heads.map(|(head, _)| head.to_owned()), heads, HEADS)
}

fn row<const N: usize>(cells: [String; N], heads: &[(&'static str, Align); N], style: Style) -> Row<'static> {
    let cells = cells.into_iter().zip(heads).map(|(cell, (_, align))| aligned(cell, *align));
    Row::new(cells.collect::<Vec<_>>()).style(style)
}

fn aligned(text: String, align: Align) -> Text<'static> {
    let alignment = if align == Align::Right { Alignment::Right } else { Alignment::Left };
    Text::from(text).alignment(alignment)
}
