//! Compares a congestion control with its law: both are told the same.

use super::{Flow, Law, State};
use pdu::Duration;

/// One call of a control's hook, as the control has recorded it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// What the connection was before, with the window in whole segments.
    pub flow: Flow,
    /// What was called.
    pub hook: Hook,
    /// The window after it.
    pub window: u32,
    /// The slow start threshold after it.
    pub ssthresh: u32,
}

/// Linux's hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// The control begins.
    Init,
    /// The control ends.
    Release,
    /// A loss: the control returned this window.
    Ssthresh(u32),
    /// So many segments were acknowledged.
    CongAvoid(u32),
    /// Segments were acknowledged, with this round trip if it was measured.
    PktsAcked(Option<Duration>),
    /// A new state.
    SetState(State),
    /// The connection sends after everything was acknowledged.
    TxStart,
    /// Something that no law here reacts to.
    Other,
    /// A mistake: the control returned this window.
    UndoCwnd(u32),
}

/// How well a control follows its law.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// How far the law's window was from the control's after each acknowledgement that let the window grow.
    pub windows: Vec<Error>,
    /// The same for the windows to which losses lead from the control's own, and for those after losses that were none.
    pub reductions: Vec<Error>,
    /// The same for the windows of whole groups, after the same acknowledgements.
    pub aggregates: Vec<Error>,
    /// How often the law's window was set to the control's, because the kernel had moved it: after repairs (each counts
    /// once), silences and mistakes.
    pub resynchronisations: u32,
}

/// A difference between two windows, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Error {
    /// What the control had.
    pub window: f64,
    /// How far the law was from it.
    pub difference: f64,
}

impl Comparison {
    /// Both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.windows.extend(other.windows);
        self.reductions.extend(other.reductions);
        self.aggregates.extend(other.aggregates);
        self.resynchronisations += other.resynchronisations;
        self
    }
}

impl Error {
    fn between(control: u32, law: f64) -> Self {
        let window = f64::from(control);
        // The control has whole segments, and the law the fraction as well.
        Self { window, difference: (law.floor() - window).abs() }
    }

    /// The difference as a part of so many segments, or of this part of the window if that is more.
    #[must_use]
    pub fn of(&self, segments: f64, part: f64) -> f64 {
        self.difference / segments.max(part * self.window)
    }
}

/// A law that sees what a control has recorded of one connection.
#[derive(Clone, Debug)]
pub struct Replay<L> {
    law: L,
    /// What the law has made of the window, in segments.
    window: f64,
    ssthresh: f64,
    /// The control's window and slow start threshold after the last event; `None` while the kernel moves them.
    control: Option<(f64, f64)>,
    comparison: Comparison,
}

impl<L: Law> Replay<L> {
    /// Begins with a law that knows the connection as it is before the first event.
    #[must_use]
    pub fn of(law: L) -> Self {
        Self { law, window: 0.0, ssthresh: 0.0, control: None, comparison: Comparison::default() }
    }

    /// The law.
    pub fn law(&mut self) -> &mut L {
        &mut self.law
    }

    /// Lets the law see the next event.
    pub fn follow(&mut self, event: &Event) {
        let mut flow = self.resynchronised(event);
        let mut control = Some((event.window.into(), event.ssthresh.into()));
        match event.hook {
            Hook::CongAvoid(acked) if flow.is_window_used => {
                self.law.cong_avoid(&mut flow, acked);
                self.comparison.windows.push(Error::between(event.window, flow.window));
            }
            Hook::Ssthresh(window) => {
                // At the window that the control had, in whole segments: some laws keep it in mind until the next loss.
                self.comparison.reductions.push(Error::between(window, self.law.ssthresh(&event.flow)));
                // The kernel goes there.
                control = None;
            }
            Hook::UndoCwnd(window) => {
                self.comparison.reductions.push(Error::between(window, self.law.undo_cwnd(&flow)));
            }
            Hook::TxStart => self.law.tx_start(&mut flow),
            Hook::PktsAcked(rtt) => self.law.pkts_acked(&mut flow, rtt),
            Hook::SetState(state) => self.law.set_state(&flow, state),
            Hook::Release => self.law.release(&flow),
            Hook::CongAvoid(_) | Hook::Init | Hook::Other => {}
        }
        (self.window, self.ssthresh) = (flow.window, flow.ssthresh);
        self.control = control.filter(|_| !event.flow.state.is_reducing());
    }

    /// What the event says, with the law's window and threshold, unless the kernel has moved the control's since the last
    /// event.
    fn resynchronised(&mut self, event: &Event) -> Flow {
        let before = (event.flow.window, event.flow.ssthresh);
        if self.control != Some(before) {
            (self.window, self.ssthresh) = before;
            self.comparison.resynchronisations += u32::from(!event.flow.state.is_reducing());
        }
        Flow { window: self.window, ssthresh: self.ssthresh, ..event.flow }
    }

    /// What has been found.
    #[must_use]
    pub fn end(self) -> Comparison {
        self.comparison
    }
}

/// The flow of a connection that has just begun.
#[cfg(test)]
pub(crate) fn beginning(now: pdu::Instant) -> Flow {
    Flow {
        now,
        window: 10.0,
        ssthresh: f64::from(i32::MAX),
        prior_window: 0.0,
        delivered: 0,
        srtt: Duration::ZERO,
        is_window_used: true,
        state: State::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Bic;
    use pdu::Instant;

    /// A loss, a round trip after its repair, and the windows that they leave behind.
    fn lose_and_go_on(replay: &mut Replay<Bic>, window: f64, remains: u32, after: u32) {
        let flow = Flow { window, ssthresh: remains.into(), ..beginning(Instant::ZERO) };
        let hook = Hook::Ssthresh(remains);
        replay.follow(&Event { flow, hook, window: remains, ssthresh: remains });
        let flow = Flow { window: remains.into(), ..flow };
        replay.follow(&Event { flow, hook: Hook::CongAvoid(remains), window: after, ssthresh: remains });
    }

    #[test]
    fn what_a_law_keeps_in_mind_of_a_loss_is_the_controls_window() {
        let mut replay = Replay::of(Bic::default());
        lose_and_go_on(&mut replay, 100.0, 79, 100);
        // The law is at 84. There, it would take this loss for one that came earlier than the last.
        lose_and_go_on(&mut replay, 100.0, 79, 84);
        let comparison = replay.end();
        assert_eq!(comparison.reductions.iter().map(|error| error.difference).sum::<f64>(), 0.0);
        let differences: Vec<_> = comparison.windows.iter().map(|error| error.difference).collect();
        assert_eq!(differences, [16.0, 0.0]);
    }

    #[test]
    fn a_repair_of_many_events_is_one_resynchronisation() {
        let mut replay = Replay::of(Bic::default());
        let begun = beginning(Instant::ZERO);
        for (state, window) in [
            (State::Open, 10),
            (State::Recovery, 9),
            (State::Recovery, 8),
            (State::Recovery, 7),
            (State::Open, 7),
        ] {
            let flow = Flow { state, window: window.into(), ..begun };
            replay.follow(&Event { flow, hook: Hook::Other, window, ssthresh: u32::MAX >> 1 });
        }
        // The first one is that of the beginning.
        assert_eq!(replay.end().resynchronisations, 2);
    }
}
