//! The order of commands: puts the commands of all lanes into the order of their CmdSNs, tells the initiator the
//! command window, and reminds it of commands that have not arrived (RFC 7143 §4.2.2.1).

use super::reminder::Reminder;
use pdu::{CmdSn, Instant, Window};
use std::collections::VecDeque;

/// The widest window, in commands. Serial numbers allow 2³¹ − 1, but no path needs more commands than this in flight,
/// and each costs memory.
const COMMANDS_MAX: u32 = 1 << 14;

/// The result of a numbered command's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The command is the next in order. If others wait, it fills the hole.
    Next,
    /// The command waits for an earlier one.
    Early,
    /// The command is outside the window or has arrived before: it must be silently ignored.
    Ignored,
}

/// The state of one CmdSN.
#[derive(Debug)]
enum Place<T> {
    /// The command has not arrived.
    Hole,
    /// The command was aborted before it arrived, which counts as its arrival (§11.6.1).
    Plugged,
    Arrived(T),
}

/// The next item in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Delivery<T> {
    /// The command of this CmdSN was aborted: nothing is delivered for it.
    Plugged,
    /// The command to serve.
    Command(T),
}

/// Commands between ExpCmdSN and MaxCmdSN. The window slides when commands are retired, not when they are delivered, so
/// it bounds waiting and executing commands together.
#[derive(Debug)]
pub(super) struct CommandOrder<T> {
    exp_cmd_sn: CmdSn,
    max_cmd_sn: CmdSn,
    /// The places from `exp_cmd_sn` up to the last command that has arrived.
    places: VecDeque<Place<T>>,
    early: u32,
    /// The MaxCmdSN that the initiator was last told.
    told_max_cmd_sn: CmdSn,
    /// When to remind the initiator of a command that others wait for.
    reminder: Reminder,
}

impl<T> CommandOrder<T> {
    pub(super) fn new(first: CmdSn, commands: u32) -> Self {
        let commands = commands.clamp(1, COMMANDS_MAX);
        // The window holds `commands` from `first` on.
        let max_cmd_sn = CmdSn(first.0.wrapping_sub(1)).plus(commands);
        Self {
            exp_cmd_sn: first,
            max_cmd_sn,
            places: VecDeque::new(),
            early: 0,
            told_max_cmd_sn: max_cmd_sn,
            reminder: Reminder::default(),
        }
    }

    pub(super) fn exp_cmd_sn(&self) -> CmdSn {
        self.exp_cmd_sn
    }

    /// The present command window.
    pub(super) fn window(&self) -> Window {
        Window { exp_cmd_sn: self.exp_cmd_sn, max_cmd_sn: self.max_cmd_sn }
    }

    /// The present command window, for a PDU that tells it to the initiator.
    pub(super) fn tell(&mut self) -> Window {
        self.told_max_cmd_sn = self.max_cmd_sn;
        self.window()
    }

    /// Whether the window is open although the initiator was last told that it is closed.
    pub(super) fn has_opened(&self) -> bool {
        self.told_max_cmd_sn.precedes(self.exp_cmd_sn) && !self.max_cmd_sn.precedes(self.exp_cmd_sn)
    }

    /// The number of commands that have arrived and wait for earlier ones.
    pub(super) fn early(&self) -> u32 {
        self.early
    }

    /// The result that the arrival of `cmd_sn` would have.
    pub(super) fn classify(&self, cmd_sn: CmdSn) -> Arrival {
        match self.index(cmd_sn) {
            None => Arrival::Ignored,
            Some(index) => match self.places.get(index) {
                Some(Place::Arrived(_) | Place::Plugged) => Arrival::Ignored,
                _ if index == 0 => Arrival::Next,
                _ => Arrival::Early,
            },
        }
    }

    /// Takes a command that has arrived. Returns it as the error if it must be ignored.
    pub(super) fn arrive(&mut self, cmd_sn: CmdSn, command: T) -> Result<(), T> {
        match (self.classify(cmd_sn), self.index(cmd_sn)) {
            (Arrival::Next | Arrival::Early, Some(index)) => {
                *self.place(index) = Place::Arrived(command);
                self.early += 1;
                Ok(())
            }
            _ => Err(command),
        }
    }

    /// Counts a missing command as arrived. `false` if it has arrived, or is outside the window.
    pub(super) fn plug(&mut self, cmd_sn: CmdSn) -> bool {
        match (self.classify(cmd_sn), self.index(cmd_sn)) {
            (Arrival::Next | Arrival::Early, Some(index)) => {
                *self.place(index) = Place::Plugged;
                true
            }
            _ => false,
        }
    }

    /// Plugs every hole before `end`.
    pub(super) fn plug_before(&mut self, end: CmdSn) {
        let mut cmd_sn = self.exp_cmd_sn;
        while cmd_sn.precedes(end) && self.index(cmd_sn).is_some() {
            self.plug(cmd_sn);
            cmd_sn = cmd_sn.next();
        }
    }

    /// Takes out the waiting commands that match. Each leaves a hole that the initiator may fill again.
    pub(super) fn forget(&mut self, matches: impl Fn(&T) -> bool) -> Vec<T> {
        let mut forgotten = Vec::new();
        for place in &mut self.places {
            if matches!(place, Place::Arrived(command) if matches(command))
                && let Place::Arrived(command) = core::mem::replace(place, Place::Hole)
            {
                forgotten.push(command);
                self.early -= 1;
            }
        }
        forgotten
    }

    /// The next command in order, if it has arrived.
    pub(super) fn deliver(&mut self) -> Option<Delivery<T>> {
        if matches!(self.places.front(), None | Some(Place::Hole)) {
            return None;
        }
        let place = self.places.pop_front()?;
        self.exp_cmd_sn = self.exp_cmd_sn.next();
        match place {
            Place::Arrived(command) => {
                self.early -= 1;
                Some(Delivery::Command(command))
            }
            Place::Plugged | Place::Hole => Some(Delivery::Plugged),
        }
    }

    /// Frees the place of a delivered command: the initiator may send one more.
    pub(super) fn retire(&mut self) {
        self.max_cmd_sn = self.max_cmd_sn.next();
    }

    /// Updates the reminder; `has_moved` says that a command was delivered just now. The command for which others wait
    /// may have been lost.
    pub(super) fn note_progress(&mut self, now: Instant, has_moved: bool) {
        let is_waiting = self.early > 0;
        if has_moved {
            self.reminder.note_progress(now, !is_waiting);
        } else if is_waiting {
            self.reminder.expect(now);
        }
    }

    /// When to remind the initiator of the first hole.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.reminder.due().filter(|_| self.early > 0)
    }

    /// Whether to remind it now. If so, moves the next reminder.
    pub(super) fn falls_due(&mut self, now: Instant) -> bool {
        self.early > 0 && self.reminder.falls_due(now)
    }

    fn index(&self, cmd_sn: CmdSn) -> Option<usize> {
        let index = cmd_sn.distance_from(self.exp_cmd_sn);
        let capacity = self.max_cmd_sn.next().distance_from(self.exp_cmd_sn);
        if index < capacity { usize::try_from(index).ok() } else { None }
    }

    fn place(&mut self, index: usize) -> &mut Place<T> {
        if self.places.len() <= index {
            self.places.resize_with(index + 1, || Place::Hole);
        }
        &mut self.places[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delivered(order: &mut CommandOrder<u32>) -> Vec<u32> {
        core::iter::from_fn(|| order.deliver())
            .filter_map(|delivery| match delivery {
                Delivery::Command(command) => Some(command),
                Delivery::Plugged => None,
            })
            .collect()
    }

    #[test]
    fn a_command_beyond_the_window_is_ignored() {
        let mut order = CommandOrder::new(CmdSn(u32::MAX), 2);
        assert_eq!(order.arrive(CmdSn(1), 1), Err(1));
        assert_eq!(order.arrive(CmdSn(0), 0), Ok(()));
        assert_eq!(order.arrive(CmdSn(u32::MAX - 1), 9), Err(9));
    }

    #[test]
    fn a_closed_window_says_one_less_than_expected() {
        let mut order = CommandOrder::new(CmdSn(5), 1);
        order.arrive(CmdSn(5), 5).unwrap();
        assert_eq!(delivered(&mut order), [5]);
        assert_eq!(order.window(), Window { exp_cmd_sn: CmdSn(6), max_cmd_sn: CmdSn(5) });
        assert_eq!(order.classify(CmdSn(6)), Arrival::Ignored);
        order.retire();
        assert_eq!(order.classify(CmdSn(6)), Arrival::Next);
    }

    #[test]
    fn a_plugged_hole_lets_the_next_pass() {
        let mut order = CommandOrder::new(CmdSn(0), 4);
        order.arrive(CmdSn(1), 1).unwrap();
        assert!(order.plug(CmdSn(0)));
        assert!(!order.plug(CmdSn(1)));
        assert_eq!(order.deliver(), Some(Delivery::Plugged));
        assert_eq!(order.deliver(), Some(Delivery::Command(1)));
    }

    #[test]
    fn what_is_forgotten_may_come_again() {
        let mut order = CommandOrder::new(CmdSn(0), 4);
        order.arrive(CmdSn(1), 1).unwrap();
        assert_eq!(order.forget(|&command| command == 1), [1]);
        assert_eq!(order.early(), 0);
        assert_eq!(order.arrive(CmdSn(1), 7), Ok(()));
    }

    #[test]
    fn a_window_that_has_opened_is_news_until_it_is_told() {
        let mut order = CommandOrder::new(CmdSn(5), 1);
        order.arrive(CmdSn(5), 5).unwrap();
        assert_eq!(delivered(&mut order), [5]);
        order.tell();
        assert!(!order.has_opened());
        order.retire();
        assert!(order.has_opened());
        order.tell();
        assert!(!order.has_opened());
    }

    #[test]
    fn only_a_hole_that_others_wait_behind_has_a_deadline() {
        let now = Instant::ZERO;
        let mut order = CommandOrder::new(CmdSn(0), 4);
        order.note_progress(now, false);
        assert_eq!(order.deadline(), None);
        order.arrive(CmdSn(1), 1).unwrap();
        order.note_progress(now, false);
        let due = order.deadline().expect("a reminder");
        assert!(!order.falls_due(now) && order.falls_due(due));
        order.arrive(CmdSn(0), 0).unwrap();
        assert_eq!(delivered(&mut order), [0, 1]);
        order.note_progress(due, true);
        assert_eq!(order.deadline(), None);
    }

    proptest! {
        #[test]
        fn commands_come_out_in_order_and_once_however_they_arrive(
            first: u32,
            width in 1u32..20,
            arrivals in prop::collection::vec(0u32..40, 0..200),
        ) {
            let mut order = CommandOrder::new(CmdSn(first), width);
            let mut next = 0;
            for arrival in arrivals {
                let _ = order.arrive(CmdSn(first).plus(arrival), arrival);
                while let Some(Delivery::Command(command)) = order.deliver() {
                    prop_assert_eq!(command, next);
                    next += 1;
                    order.retire();
                }
                let advertised = order.window();
                prop_assert_eq!(advertised.max_cmd_sn.next().distance_from(advertised.exp_cmd_sn), width);
            }
        }
    }
}
