//! Medians and spreads.

/// The median of the values, which is the mean of the middle two for an even number of them; 0 for none.
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

/// The smallest and the largest value.
pub fn spread(values: &[f64]) -> (f64, f64) {
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    (smallest, values.iter().copied().fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median([4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }
}
