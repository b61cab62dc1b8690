use std::ops::Range;

/// How often something is measured at most.
const TIMES: usize = 3;

/// Measures until a figure is in `range`, three times at most; gives the last figure.
///
/// A machine that is busy with something else, or frozen for a moment, makes one measurement wrong. What is limited
/// wrongly is wrong every time.
pub fn measured(range: &Range<f64>, mut measure: impl FnMut() -> f64) -> f64 {
    let mut figure = f64::NAN;
    for _ in 0..TIMES {
        figure = measure();
        if range.contains(&figure) {
            break;
        }
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_figure_is_measured_again_and_three_are_believed() {
        let mut figures = [0.2, 1.0, 0.3].into_iter();
        assert_eq!(measured(&(0.9..1.1), || figures.next().unwrap()), 1.0);
        let mut times = 0;
        let figure = measured(&(0.1..0.2), || {
            times += 1;
            f64::from(times)
        });
        assert_eq!((figure, times), (3.0, 3));
    }
}
