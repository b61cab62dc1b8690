//! Tables that a person reads: columns as wide as their widest cell, numbers to the right.

use std::fmt;

use super::escape::escape;

/// How a column's cells are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table being filled, row by row.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    heads: [(&'static str, Align); N],
    rows: Vec<[String; N]>,
    /// Of a table that goes on: how wide its columns are so far.
    begun: Option<[usize; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(heads: [(&'static str, Align); N]) -> Self {
        Self { heads, rows: Vec::new(), begun: None }
    }

    /// Adds a row, whatever others have put into its cells: none ends the row, or speaks to the terminal.
    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| escape(&cell)));
    }

    /// Takes out the rows. Those that come later are of the same table: without heads, in columns at least as wide.
    pub(super) fn go_on(&mut self) {
        self.begun = Some(self.widths());
        self.rows.clear();
    }

    fn widths(&self) -> [usize; N] {
        std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            let least = self.begun.map_or(self.heads[column].0.len(), |widths| widths[column]);
            cells.chain([least]).max().unwrap_or_default()
        })
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let heads: [String; N] = self.heads.map(|(head, _)| head.to_owned());
        let heads = self.begun.is_none().then_some(&heads);
        for row in heads.into_iter().chain(&self.rows) {
            let mut line = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(widths).zip(self.heads) {
                match align {
                    Align::Left => line.push_str(&format!("{cell:<width$}  ")),
                    Align::Right => line.push_str(&format!("{cell:>width$}  ")),
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number with a space between groups of three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes with three significant digits and a decimal unit.
pub(super) fn bytes(number: u64) -> String {
    let mut value = number as f64;
    let mut units = ["B", "kB", "MB", "GB", "TB", "PB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    match value {
        _ if unit == "B" => format!("{number} B"),
        value if value < 9.995 => format!("{value:.2} {unit}"),
        value if value < 99.95 => format!("{value:.1} {unit}"),
        value => format!("{value:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new([("NAME", Align::Left), ("PACKETS", Align::Right)]);
        table.row(["a-long-name".into(), grouped(1_234_567)]);
        table.row(["b".into(), grouped(7)]);
        assert_eq!(
            table.to_string(),
            "NAME           PACKETS\na-long-name  1 234 567\nb                    7\n"
        );
    }

    #[test]
    fn a_cell_neither_ends_its_row_nor_speaks_to_the_terminal() {
        let mut table = Table::new([("NAME", Align::Left), ("PACKETS", Align::Right)]);
        table.row(["web\u{1b}[2J\nforged".into(), grouped(7)]);
        assert_eq!(table.to_string(), "NAME                  PACKETS\nweb\\u{1b}[2J\\nforged        7\n");
    }

    #[test]
    fn a_table_that_goes_on_keeps_its_columns_and_has_one_head() {
        let mut table = Table::new([("NAME", Align::Left), ("PACKETS", Align::Right)]);
        table.row(["a-long-name".into(), grouped(7)]);
        let mut text = table.to_string();
        table.go_on();
        table.row(["b".into(), grouped(12_345_678)]);
        text.push_str(&table.to_string());
        assert_eq!(text, "NAME         PACKETS\na-long-name        7\nb            12 345 678\n");
    }

    #[test]
    fn bytes_have_three_digits_and_a_unit() {
        let cases =
            [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (12_345, "12.3 kB"), (999_600, "1.00 MB")];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
    }
}
