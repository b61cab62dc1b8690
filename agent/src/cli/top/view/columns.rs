//! Which columns of ports a terminal has room for.

/// What the name has at least.
const NAME: u16 = 11;

/// What a name has at least before limits and notes are shown.
const WIDE_NAME: u16 = 28;

/// Each column but the first, the dearest first: its place in a row, and its width with the space before it.
const DEAREST: [(usize, u16); 9] =
    [(1, 9), (4, 9), (7, 8), (2, 8), (3, 8), (5, 8), (6, 8), (8, 14), (NOTES, 25)];

/// The last column.
const NOTES: usize = 9;

/// The last of them without which a name may be short.
const FIGURES: usize = 7;

/// The columns that fit, in their order, with their widths. The name has what is left, and shares it with the notes.
pub(super) fn fitting(width: u16) -> Vec<(usize, u16)> {
    let mut columns = Vec::new();
    let mut left = width.saturating_sub(NAME);
    for (at, (column, wants)) in DEAREST.into_iter().enumerate() {
        let name = if at < FIGURES { 0 } else { WIDE_NAME - NAME };
        if wants + name > left {
            break;
        }
        left -= wants;
        columns.push((column, wants - 1));
    }
    let mut name = NAME.min(width) + left;
    if let Some((NOTES, notes)) = columns.last_mut() {
        let more = (name - WIDE_NAME) / 2;
        *notes += more;
        name -= more;
    }
    columns.push((0, name));
    columns.sort_by_key(|(column, _)| *column);
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_has_the_name_and_what_is_dearest() {
        let columns = |width| fitting(width).into_iter().map(|(column, _)| column).collect::<Vec<_>>();
        assert_eq!(columns(1), [0]);
        assert_eq!(columns(20), [0, 1]);
        assert_eq!(columns(40), [0, 1, 4, 7]);
        assert_eq!(columns(80), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(columns(200), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        for width in 0..300 {
            let used: u16 = fitting(width).into_iter().map(|(_, width)| width + 1).sum();
            assert_eq!(used, width + 1, "columns and the spaces between them are as wide as the terminal");
        }
    }
}
