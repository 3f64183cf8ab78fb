//! When to remind an initiator: a NOP-In tells StatSN and ExpCmdSN, which lets the initiator notice lost PDUs (RFC 7143
//! §7.1.4.2). Error recovery level 1 and above.

use pdu::Instant;
use std::time::Duration;

/// The delay of the first reminder. It exceeds the time that an acknowledgement takes on any path, since an
/// acknowledgement travels with the initiator's next PDU.
const PATIENCE: Duration = Duration::from_secs(1);

/// The most reminders without effect, each after twice the delay of the one before. The pings of a silent lane go on
/// after that.
const REMINDERS_MAX: u32 = 5;

/// The reminder of one thing.
#[derive(Debug, Default)]
pub(super) struct Reminder {
    due: Option<Instant>,
    given: u32,
}

impl Reminder {
    /// Starts the reminder, unless it is running.
    pub(super) fn expect(&mut self, now: Instant) {
        if self.due.is_none() && self.given == 0 {
            self.due = Some(now + PATIENCE);
        }
    }

    /// Restarts the reminder after progress, or stops it if `is_done`.
    pub(super) fn note_progress(&mut self, now: Instant, is_done: bool) {
        self.given = 0;
        self.due = (!is_done).then(|| now + PATIENCE);
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether a reminder is due. If so, schedules the next one.
    pub(super) fn falls_due(&mut self, now: Instant) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            self.given += 1;
            self.due = (self.given < REMINDERS_MAX).then(|| now + PATIENCE * (1 << self.given));
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reminders_grow_rare_and_end() {
        let mut reminder = Reminder::default();
        reminder.expect(Instant::ZERO);
        let mut times = Vec::new();
        while let Some(due) = reminder.due() {
            assert!(reminder.falls_due(due));
            reminder.expect(due);
            times.push(due.saturating_duration_since(Instant::ZERO).as_secs());
        }
        assert_eq!(times, [1, 3, 7, 15, 31]);
        reminder.note_progress(Instant::ZERO, false);
        assert!(reminder.due().is_some());
        reminder.note_progress(Instant::ZERO, true);
        assert_eq!(reminder.due(), None);
    }
}
