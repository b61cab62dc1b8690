//! What the charts have in common: a white SVG, text that is measured in columns, and shunt's colour.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::comparison::Row;

/// Pixels across.
pub(super) const WIDTH: i32 = 860;

/// Where names end and bars begin.
pub(super) const LEFT: i32 = 250;

/// Where bars end and figures begin.
pub(super) const RIGHT: i32 = 690;

/// Text.
pub(super) const INK: RGBColor = RGBColor(0x22, 0x28, 0x2e);

/// Text of less importance, lines of scales.
pub(super) const FAINT: RGBColor = RGBColor(0x8a, 0x93, 0x9c);

const OURS: RGBColor = RGBColor(0x0b, 0x8f, 0x6a);
const THEIRS: RGBColor = RGBColor(0x9a, 0xa5, 0xb1);

/// Where something is put.
#[derive(Debug, Clone, Copy)]
pub(super) enum Align {
    Left,
    Middle,
    Right,
}

/// A chart being drawn.
pub(super) struct Chart<'a>(DrawingArea<SVGBackend<'a>, Shift>);

impl<'a> Chart<'a> {
    /// An empty one that will be written to `path`.
    pub(super) fn new(path: &'a Path, height: i32) -> Result<Self> {
        let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
        let area = SVGBackend::new(path, size).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        Ok(Self(area))
    }

    /// Puts text at a point, centred on it vertically.
    pub(super) fn text(
        &self,
        text: &str,
        at: (i32, i32),
        size: i32,
        color: RGBColor,
        align: Align,
    ) -> Result<()> {
        let horizontal = match align {
            Align::Left => HPos::Left,
            Align::Middle => HPos::Center,
            Align::Right => HPos::Right,
        };
        let style = ("sans-serif", size).into_font().color(&color).pos(Pos::new(horizontal, VPos::Center));
        self.0.draw(&Text::new(text.to_owned(), at, style)).map_err(failed)
    }

    /// A filled rectangle.
    pub(super) fn bar(&self, from: (i32, i32), to: (i32, i32), color: RGBAColor) -> Result<()> {
        self.0.draw(&Rectangle::new([from, to], color.filled())).map_err(failed)
    }

    /// A line.
    pub(super) fn line(&self, from: (i32, i32), to: (i32, i32), color: RGBColor, width: u32) -> Result<()> {
        self.0.draw(&PathElement::new([from, to], color.stroke_width(width))).map_err(failed)
    }

    /// A filled circle.
    pub(super) fn dot(&self, at: (i32, i32), radius: i32, color: RGBAColor) -> Result<()> {
        self.0.draw(&Circle::new(at, radius, color.filled())).map_err(failed)
    }

    /// Writes the file.
    pub(super) fn finish(self) -> Result<()> {
        self.0.present().map_err(failed)
    }
}

/// A contestant's colour.
pub(super) fn color(row: &Row) -> RGBColor {
    if row.is_shunt() { OURS } else { THEIRS }
}

/// A place between [`LEFT`] and [`RIGHT`]: `value` on a scale from `low` to `high`.
pub(super) fn place(value: f64, low: f64, high: f64) -> i32 {
    let part = ((value - low) / (high - low)).clamp(0.0, 1.0);
    LEFT + (part * f64::from(RIGHT - LEFT)).round() as i32
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("draw a chart: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_a_scale_stay_in_the_picture() {
        let at = |value| place(value, 1.0, 2.0);
        assert_eq!([at(0.0), at(1.0), at(2.0), at(9.0)], [LEFT, LEFT, RIGHT, RIGHT]);
        assert_eq!(at(1.5), (LEFT + RIGHT) / 2);
    }
}
