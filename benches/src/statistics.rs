//! Numbers from numbers.

/// The middle one, or the mean of the two in the middle; 0 of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}

/// The smallest and the largest.
pub fn spread(values: &[f64]) -> (f64, f64) {
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    (smallest, values.iter().copied().fold(0.0, f64::max))
}

/// The geometric mean, if there are any.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
    // No more than a few dozen.
    (!values.is_empty()).then(|| (logarithms / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median([4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn the_geometric_mean_of_a_double_and_a_half_is_one() {
        assert!((geometric_mean(&[2.0, 0.5]).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(geometric_mean(&[]), None);
    }
}
