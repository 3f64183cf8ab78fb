//! BIC (Xu, Harfoush and Rhee 2004), with the constants of Linux.

use super::{Flow, Law, State, WINDOW_MIN};

/// After a loss, a search for the window at which it happened; then on beyond it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bic {
    /// Where the search goes to; zero before the first loss.
    window_max: f64,
    earlier_window_max: f64,
}

const LOW_WINDOW: f64 = 14.0;
const REMAINS: f64 = 819.0 / 1024.0;
/// Smax and Smin, in segments per round trip.
const GROWTH_MAX: f64 = 16.0;
const GROWTH_MIN: f64 = 0.2;
/// A step goes a quarter of what remains of the way.
const STEPS: f64 = 4.0;

impl Law for Bic {
    fn ssthresh(&mut self, flow: &Flow) -> f64 {
        let window = flow.window.floor();
        self.earlier_window_max = self.window_max;
        let is_earlier = window < self.window_max;
        self.window_max = if is_earlier { (window * (1.0 + REMAINS) / 2.0).floor() } else { window };
        let remains = if window <= LOW_WINDOW { 0.5 } else { REMAINS };
        (window * remains).floor().max(WINDOW_MIN)
    }

    fn growth(&mut self, flow: &Flow) -> f64 {
        let (window, max) = (flow.window.floor(), self.window_max.floor());
        if window <= LOW_WINDOW {
            return 1.0;
        }
        let growth = if window < max {
            let step = (max - window) / STEPS;
            if step < 2.0 { GROWTH_MIN } else { step.floor().min(GROWTH_MAX) }
        } else if window < max + STEPS {
            GROWTH_MIN
        } else {
            ((window - max) / (STEPS - 1.0)).min(GROWTH_MAX)
        };
        if max == 0.0 { growth.max(window / 20.0) } else { growth }
    }

    fn set_state(&mut self, _: &Flow, state: State) {
        if state == State::Loss {
            self.window_max = 0.0;
        }
    }

    fn undo_cwnd(&mut self, flow: &Flow) -> f64 {
        self.window_max = self.earlier_window_max;
        flow.window.max(flow.prior_window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::tests::flow;

    /// The windows of so many round trips after a loss at this window.
    fn after_a_loss_at(window: f64, round_trips: usize) -> Vec<f64> {
        let (mut bic, mut flow) = (Bic::default(), flow(window));
        flow.window = bic.ssthresh(&flow);
        flow.ssthresh = flow.window;
        (0..round_trips)
            .map(|_| {
                flow.window += bic.growth(&flow);
                flow.window
            })
            .collect()
    }

    #[test]
    fn the_search_begins_with_steps_of_smax_and_ends_at_the_window_of_the_loss() {
        let windows = after_a_loss_at(1000.0, 60);
        assert!((windows[0] - 799.0 - 16.0).abs() < 1.0, "{windows:?}");
        let near = windows.iter().filter(|window| (992.0..1004.0).contains(*window)).count();
        assert!(near > 20, "it stays long near 1000: {windows:?}");
        assert!(windows.iter().is_sorted());
    }

    #[test]
    fn the_search_takes_steps_of_smax_down_to_four_of_them_and_then_a_quarter_of_the_way() {
        // After a loss at 4000, which leaves 3199: 801 - 46 * 16 = 65, and the next step is the last one of Smax. Of 49 that
        // remain, whole steps of a quarter leave 37, 28, 21, 16, 12, 9 and 7; Smin takes the rest in 35.
        let windows = after_a_loss_at(4000.0, 100);
        let steps: Vec<_> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The first window is after the first step.
        assert_eq!(steps.iter().filter(|step| **step == GROWTH_MAX).count(), 46);
        assert_eq!(steps[46..53], [12.0, 9.0, 7.0, 5.0, 4.0, 3.0, 2.0]);
        assert!(windows[53 + 34] < 4000.0 && windows[53 + 35] >= 3999.99, "{windows:?}");
    }
}
