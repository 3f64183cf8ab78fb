//! HighSpeed TCP (RFC 3649).

use super::{Flow, Law, WINDOW_MIN};

/// The larger the window, the faster it grows, and the less of it a loss takes (RFC 3649 §5).
#[derive(Clone, Copy, Debug, Default)]
pub struct Hstcp;

const LOW_WINDOW: f64 = 38.0;
const HIGH_WINDOW: f64 = 83_000.0;
const HIGH_DECREASE: f64 = 0.1;

impl Hstcp {
    /// b(w): the part of the window that a loss takes.
    #[must_use]
    pub fn decrease(window: f64) -> f64 {
        if window <= LOW_WINDOW {
            return 0.5;
        }
        (HIGH_DECREASE - 0.5) * (window / LOW_WINDOW).ln() / (HIGH_WINDOW / LOW_WINDOW).ln() + 0.5
    }

    /// a(w): the segments by which the window grows per round trip.
    #[must_use]
    pub fn increase(window: f64) -> f64 {
        if window <= LOW_WINDOW {
            return 1.0;
        }
        let (loss_rate, decrease) = (0.078 / window.powf(1.2), Self::decrease(window));
        (window * window * loss_rate * 2.0 * decrease / (2.0 - decrease)).max(1.0)
    }
}

impl Law for Hstcp {
    fn ssthresh(&mut self, flow: &Flow) -> f64 {
        (flow.window * (1.0 - Self::decrease(flow.window))).floor().max(WINDOW_MIN)
    }

    fn growth(&mut self, flow: &Flow) -> f64 {
        Self::increase(flow.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the program in the kernel: the first window that grows by a segment more per round trip, and the part of
    /// it that a loss takes, of 1024.
    fn table() -> Vec<(f64, f64)> {
        let program = include_str!("../../../../bpf/rw_hstcp.bpf.c");
        let (_, rows) = program.split_once("rows[] = {").unwrap();
        let (rows, _) = rows.split_once("};").unwrap();
        let rows = rows.split('{').skip(1).map(|row| row.split_once('}').unwrap().0.split_once(',').unwrap());
        rows.map(|(window, cut)| (window.trim().parse().unwrap(), cut.trim().parse().unwrap())).collect()
    }

    #[test]
    fn the_table_in_the_kernel_has_the_law() {
        let table = table();
        assert_eq!(table.len(), 73);
        for (row, (window, cut)) in table.into_iter().enumerate() {
            let (increase, decrease) = (row as f64 + 1.0, cut / 1024.0);
            let (a, b) = (Hstcp::increase(window), Hstcp::decrease(window));
            assert!((a / increase - 1.0).abs() < 0.005 && (b - decrease).abs() < 0.001, "{window}: {a} {b}");
        }
    }

    #[test]
    fn the_law_meets_the_points_of_the_rfcs_table() {
        // RFC 3649, appendix B: w, a(w), b(w).
        for (window, increase, decrease) in [
            (38.0, 1.0, 0.50),
            (118.0, 2.0, 0.44),
            (495.0, 5.0, 0.37),
            (1058.0, 8.0, 0.33),
            (24_402.0, 45.0, 0.16),
            (84_035.0, 71.0, 0.10),
        ] {
            let (a, b) = (Hstcp::increase(window), Hstcp::decrease(window));
            assert!((a / increase - 1.0).abs() < 0.03 && (b - decrease).abs() < 0.006, "{window}: {a} {b}");
        }
    }
}
