//! The congestion windows of connections, beside each other: how large they are, how steady, how even, and whether one is
//! small while another is large.

use crate::experiment::Quantity;
use observe::statistics::{Sample, correlation, jain_index};
use observe::{SocketSeries, SocketsReport};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// TCP's largest window (RFC 7323 §2.3).
const LARGEST_WINDOW: u64 = 1 << 30;

/// The first congestion window that no connection can have. Then the kernel did not run the connection's congestion control
/// when a segment was lost, and took for its answer what lay on the stack (ARCHITECTURE.md, "Congestion control").
pub(crate) fn impossible(report: &SocketsReport) -> Option<String> {
    let samples = report.sockets.iter().flat_map(|socket| &socket.samples);
    let mut windows = samples.map(|sample| (sample.tcp.snd_cwnd, sample.tcp.snd_mss_bytes));
    let (window, _) = windows.find(|(window, mss_bytes)| !is_possible(*window, *mss_bytes))?;
    Some(format!(
        "a congestion window had {window} segments, because the kernel did not run the congestion control at a loss"
    ))
}

fn is_possible(window: u32, mss_bytes: u32) -> bool {
    u64::from(window) * u64::from(mss_bytes) <= LARGEST_WINDOW
}

/// The windows of all connections at several moments; in segments.
struct Windows {
    /// Of each connection, at each moment.
    of_connections: Vec<Vec<f64>>,
}

/// What is told of the windows of the chosen connections in this time. Nothing, if they were not all there at two moments.
pub(crate) fn quantities(
    report: &SocketsReport,
    counted_ns: &RangeInclusive<u64>,
    is_chosen: impl Fn(&SocketSeries) -> bool,
) -> BTreeMap<Quantity, f64> {
    let chosen: Vec<_> = report.sockets.iter().filter(|socket| is_chosen(socket)).collect();
    Windows::of(&chosen, counted_ns).map(|windows| windows.quantities()).unwrap_or_default()
}

impl Windows {
    /// The moments are those at which the first connection was looked at; the others had then their last known window.
    fn of(connections: &[&SocketSeries], counted_ns: &RangeInclusive<u64>) -> Option<Self> {
        let (first, others) = connections.split_first()?;
        let mut windows = Self { of_connections: vec![Vec::new(); connections.len()] };
        for sample in first.samples.iter().filter(|sample| counted_ns.contains(&sample.at_ns)) {
            let last_known = |other: &&SocketSeries| {
                let known = other.samples.partition_point(|other| other.at_ns <= sample.at_ns);
                let is_over = other.ended_ns.is_some_and(|ended_ns| ended_ns <= sample.at_ns);
                Some(other.samples[..known].last().filter(|_| !is_over)?.tcp.snd_cwnd)
            };
            let Some(others) = others.iter().map(last_known).collect::<Option<Vec<_>>>() else { continue };
            let now = std::iter::once(sample.tcp.snd_cwnd).chain(others);
            windows.of_connections.iter_mut().zip(now).for_each(|(of, window)| of.push(window.into()));
        }
        Some(windows).filter(|windows| windows.moments() > 1)
    }

    fn moments(&self) -> usize {
        self.of_connections.first().map_or(0, Vec::len)
    }

    fn at(&self, moment: usize) -> Vec<f64> {
        self.of_connections.iter().map(|windows| windows[moment]).collect()
    }

    fn quantities(&self) -> BTreeMap<Quantity, f64> {
        let over_time = |windows: &[f64]| Sample::of(windows.iter().copied());
        let each: Vec<_> = self.of_connections.iter().filter_map(|windows| over_time(windows)).collect();
        let together: Vec<f64> = (0..self.moments()).map(|moment| self.at(moment).iter().sum()).collect();
        let together = over_time(&together);
        let fairness = (0..self.moments()).filter_map(|moment| jain_index(&self.at(moment)));
        let mean = |values: Vec<f64>| Some(Sample::of(values)?.mean());
        let deviations = each.iter().filter_map(Sample::standard_deviation).collect();
        let several = |value: Option<f64>| value.filter(|_| each.len() > 1);
        let quantities = [
            (Quantity::Window, mean(each.iter().map(Sample::mean).collect())),
            (Quantity::WindowDeviation, mean(deviations)),
            (Quantity::AggregateWindow, together.as_ref().map(Sample::mean)),
            (Quantity::AggregateWindowDeviation, together.as_ref().and_then(Sample::standard_deviation)),
            (Quantity::WindowCorrelation, self.correlation()),
            (Quantity::WindowFairness, several(mean(fairness.collect()))),
        ];
        quantities.into_iter().filter_map(|(quantity, value)| Some((quantity, value?))).collect()
    }

    /// The mean of all pairs' correlation; a window that never moves has none.
    fn correlation(&self) -> Option<f64> {
        let pairs = self.of_connections.iter().enumerate().flat_map(|(index, first)| {
            self.of_connections[index + 1..].iter().filter_map(|second| correlation(first, second))
        });
        Some(Sample::of(pairs)?.mean())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(of_connections: &[&[f64]]) -> BTreeMap<Quantity, f64> {
        Windows { of_connections: of_connections.iter().map(|windows| windows.to_vec()).collect() }
            .quantities()
    }

    #[test]
    fn a_window_beyond_tcps_largest_is_impossible() {
        assert!(is_possible(741_000, 1448));
        assert!(!is_possible(360_887_692, 1448));
    }

    #[test]
    fn windows_of_which_one_is_small_while_the_other_is_large_are_steady_together() {
        let told = told(&[&[2.0, 4.0, 6.0], &[6.0, 4.0, 2.0]]);
        assert_eq!(told[&Quantity::WindowCorrelation], -1.0);
        assert_eq!((told[&Quantity::Window], told[&Quantity::WindowDeviation]), (4.0, 2.0));
        assert_eq!(told[&Quantity::AggregateWindow], 8.0);
        assert_eq!(told[&Quantity::AggregateWindowDeviation], 0.0);
        assert!(told[&Quantity::WindowFairness] < 0.9);
    }

    #[test]
    fn windows_that_move_together_are_even() {
        let told = told(&[&[2.0, 4.0, 6.0], &[2.0, 4.0, 6.0], &[2.0, 4.0, 6.0]]);
        assert!((told[&Quantity::WindowCorrelation] - 1.0).abs() < 1e-9, "{told:?}");
        assert_eq!((told[&Quantity::WindowFairness], told[&Quantity::AggregateWindowDeviation]), (1.0, 6.0));
    }

    #[test]
    fn a_window_alone_has_neither_fairness_nor_correlation() {
        let told = told(&[&[2.0, 4.0]]);
        assert!(
            !told.contains_key(&Quantity::WindowFairness) && !told.contains_key(&Quantity::WindowCorrelation)
        );
    }
}
