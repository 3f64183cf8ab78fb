//! Decides which commands may be sent again, and when.

use scsi::client::SenseData;
use scsi::{AdditionalSense, Status};

/// The effect of repeating a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandKind {
    /// Changes nothing: READ, INQUIRY, GET LBA STATUS.
    Read,
    /// Leaves the same blocks however often it runs, if nothing else wrote them meanwhile: WRITE, WRITE SAME, UNMAP.
    Write,
    /// SYNCHRONIZE CACHE. It speaks of the nexus it was sent through: through another it says something else. One that
    /// was given up may have failed, and what it failed to write is not written by the next.
    Flush,
    /// The same where nothing of this initiator's is to be flushed, but perhaps of those before it: any nexus will do.
    FlushForOthers,
    /// Doing it twice is not the same as doing it once: COMPARE AND WRITE, PERSISTENT RESERVE OUT, EXTENDED
    /// COPY, and whatever is not known here.
    Once,
}

/// The way in which a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// No byte of it has left.
    NotStarted,
    /// The target did not begin it, for a reason that it has now reported: UNIT ATTENTION, or the deferred error of an
    /// earlier command.
    Told,
    /// The target did not begin it, for lack of something: BUSY, TASK SET FULL, becoming ready.
    Declined,
    /// The target may have begun it and gave up: ABORTED COMMAND, TASK ABORTED, target failure.
    GivenUp,
    /// Its nexus was lost: the target may have executed it, may be executing it, or may yet execute it.
    Unknown,
    /// The target reports an error that a repetition would meet again.
    Failed,
}

/// The time at which a command may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Now, on any path.
    AtOnce,
    /// After a pause, on any path.
    AfterPause,
    /// After its session has been reinstated, which proves the old nexus and its tasks dead (RFC 7143 §6.3.5). Until
    /// then nothing else may write its blocks.
    AfterReinstatement,
    /// Not by this library: only the caller knows the effect.
    Never,
}

impl Ending {
    /// The ending that a SCSI Response stands for; `None` for success. `delivered` is false for the iSCSI response
    /// "target failure" (RFC 7143 §11.4.3).
    #[must_use]
    pub fn of(delivered: bool, status: u8, sense: Option<&SenseData>) -> Option<Self> {
        const GOOD: u8 = Status::Good as u8;
        const CHECK_CONDITION: u8 = Status::CheckCondition as u8;
        const BUSY: u8 = Status::Busy as u8;
        const TASK_SET_FULL: u8 = Status::TaskSetFull as u8;
        const TASK_ABORTED: u8 = Status::TaskAborted as u8;
        match (delivered, status) {
            (false, _) | (true, TASK_ABORTED) => Some(Self::GivenUp),
            (true, GOOD) => None,
            (true, BUSY | TASK_SET_FULL) => Some(Self::Declined),
            (true, CHECK_CONDITION) => Self::of_sense(sense),
            (true, _) => Some(Self::Failed),
        }
    }

    /// RECOVERED ERROR (and NO SENSE) mean success: the command completed.
    fn of_sense(sense: Option<&SenseData>) -> Option<Self> {
        const RECOVERED_ERROR: u8 = 1;
        let Some(sense) = sense else { return Some(Self::Failed) };
        match sense.key {
            _ if sense.deferred => Some(Self::Told),
            0..=RECOVERED_ERROR => None,
            _ if sense.is_unit_attention() => Some(Self::Told),
            _ if sense.is_aborted() => Some(Self::GivenUp),
            _ if sense.is_not_ready() && becomes_ready(sense.additional) => Some(Self::Declined),
            _ => Some(Self::Failed),
        }
    }

    /// The decision for each ending and kind of command.
    #[must_use]
    pub const fn retry(self, kind: CommandKind) -> Retry {
        match (self, kind) {
            (Self::NotStarted | Self::Told, _)
            | (Self::Unknown, CommandKind::Read | CommandKind::FlushForOthers) => Retry::AtOnce,
            (Self::Declined, _) | (Self::GivenUp, CommandKind::Read | CommandKind::Write) => {
                Retry::AfterPause
            }
            (Self::Unknown, CommandKind::Write) => Retry::AfterReinstatement,
            (Self::GivenUp | Self::Unknown, CommandKind::Once | CommandKind::Flush)
            | (Self::GivenUp, CommandKind::FlushForOthers)
            | (Self::Failed, _) => Retry::Never,
        }
    }
}

/// LOGICAL UNIT NOT READY for a transient reason: becoming ready, operation in progress, an asymmetric access state
/// transition (SPC-4 annex F).
const fn becomes_ready(additional: AdditionalSense) -> bool {
    matches!((additional.code, additional.qualifier), (0x04, 0x01 | 0x07 | 0x0a))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [CommandKind; 5] = [
        CommandKind::Read,
        CommandKind::Write,
        CommandKind::Flush,
        CommandKind::FlushForOthers,
        CommandKind::Once,
    ];

    fn check_condition(key: u8, code: u8, qualifier: u8) -> Option<Ending> {
        let additional = AdditionalSense { code, qualifier };
        let sense = SenseData { key, additional, information: None, deferred: false };
        Ending::of(true, Status::CheckCondition.code(), Some(&sense))
    }

    #[test]
    fn a_write_of_unknown_outcome_waits_for_the_proof_that_its_nexus_is_dead() {
        assert_eq!(Ending::Unknown.retry(CommandKind::Write), Retry::AfterReinstatement);
    }

    #[test]
    fn a_read_of_unknown_outcome_is_sent_again_at_once() {
        assert_eq!(Ending::Unknown.retry(CommandKind::Read), Retry::AtOnce);
    }

    #[test]
    fn what_must_happen_once_is_never_repeated_blindly() {
        assert_eq!(Ending::Unknown.retry(CommandKind::Once), Retry::Never);
        assert_eq!(Ending::GivenUp.retry(CommandKind::Once), Retry::Never);
    }

    #[test]
    fn a_flush_speaks_only_of_its_own_nexus() {
        assert_eq!(Ending::Unknown.retry(CommandKind::Flush), Retry::Never);
    }

    #[test]
    fn a_flush_that_was_given_up_is_not_repeated_into_a_promise() {
        let aborted = check_condition(0xb, 0x44, 0).unwrap();
        let undelivered = Ending::of(false, 0, None).unwrap();
        for kind in [CommandKind::Flush, CommandKind::FlushForOthers] {
            assert_eq!(aborted.retry(kind), Retry::Never);
            assert_eq!(undelivered.retry(kind), Retry::Never);
        }
    }

    #[test]
    fn what_never_began_may_always_be_sent_again() {
        for kind in KINDS {
            assert_eq!(Ending::NotStarted.retry(kind), Retry::AtOnce);
            assert_eq!(check_condition(6, 0x29, 0).unwrap().retry(kind), Retry::AtOnce);
            let busy = Ending::of(true, Status::Busy.code(), None).unwrap();
            assert_eq!(busy.retry(kind), Retry::AfterPause);
            assert_eq!(check_condition(2, 0x04, 0x01).unwrap().retry(kind), Retry::AfterPause);
        }
    }

    #[test]
    fn a_refusal_is_final() {
        for kind in KINDS {
            assert_eq!(check_condition(5, 0x24, 0).unwrap().retry(kind), Retry::Never);
            let conflict = Ending::of(true, Status::ReservationConflict.code(), None).unwrap();
            assert_eq!(conflict.retry(kind), Retry::Never);
        }
    }

    #[test]
    fn a_recovered_error_is_a_success() {
        assert_eq!(check_condition(1, 0x17, 0), None);
        assert_eq!(Ending::of(true, Status::Good.code(), None), None);
    }

    #[test]
    fn a_deferred_error_is_not_the_command_s_whose_end_tells_it() {
        for key in 0..16 {
            let additional = AdditionalSense::WRITE_ERROR;
            let sense = SenseData { key, additional, information: None, deferred: true };
            let ending = Ending::of(true, Status::CheckCondition.code(), Some(&sense));
            assert_eq!(ending, Some(Ending::Told));
        }
    }

    #[test]
    fn a_check_condition_without_sense_is_a_failure() {
        assert_eq!(Ending::of(true, Status::CheckCondition.code(), None), Some(Ending::Failed));
    }
}
