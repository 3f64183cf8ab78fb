//! The unacknowledged responses of one lane, kept to be sent again (RFC 7143 §7.1.4.2, §11.16). Error recovery level 1
//! and above.

use super::event::TaskId;
use crate::seam::{Payload, Transmit};
use pdu::{StatSn, Window};
use std::collections::VecDeque;

/// The most data of responses (sense, text, returned ping data), in bytes, that one lane keeps. Beyond that, the next
/// response waits for an acknowledgement; only pings with long data reach this limit.
const DATA_BYTES_MAX: usize = 256 << 10;

/// A response that was sent.
#[derive(Debug)]
pub(super) enum SentStatus {
    /// A SCSI Response, which is made again from its task.
    Task(TaskId),
    /// Any other response, as it was sent.
    Other(Box<Transmit>),
}

impl SentStatus {
    fn data_bytes(&self) -> usize {
        match self {
            Self::Task(_) => 0,
            Self::Other(transmit) => transmit.payload.bytes(),
        }
    }
}

/// The responses that a lane has sent, one for each StatSN from the first unacknowledged one on.
#[derive(Debug, Default)]
pub(super) struct SentStatuses {
    sent: VecDeque<SentStatus>,
    data_bytes: usize,
}

impl SentStatuses {
    pub(super) fn keep(&mut self, status: SentStatus) {
        self.data_bytes += status.data_bytes();
        self.sent.push_back(status);
    }

    /// Removes the oldest response, which was acknowledged or is not needed any more.
    pub(super) fn pop(&mut self) -> Option<SentStatus> {
        let status = self.sent.pop_front()?;
        self.data_bytes -= status.data_bytes();
        Some(status)
    }

    /// The response `index` places after the first unacknowledged one.
    pub(super) fn get(&self, index: u32) -> Option<&SentStatus> {
        self.sent.get(index as usize)
    }

    pub(super) fn is_full(&self) -> bool {
        self.data_bytes >= DATA_BYTES_MAX
    }
}

/// A PDU as it was sent before, but with the present window: "exact replicas … except for the fields ExpCmdSN,
/// MaxCmdSN" (§11.16).
pub(super) fn replica(transmit: &Transmit, window: Window) -> Transmit {
    let mut header = transmit.header.clone();
    header.set_window(window);
    let payload = match &transmit.payload {
        Payload::Inline(data) => Payload::Inline(data.clone()),
        Payload::Buffer(_) | Payload::None => Payload::None,
    };
    Transmit { header, payload }
}

/// The range of a requested run of responses; `None` if it is not within the outstanding ones.
pub(super) fn run(acknowledged: StatSn, next: StatSn, begin: StatSn, count: u32) -> Option<(StatSn, StatSn)> {
    // Zero for both means all, whatever their numbers are (§11.16).
    let begin = if begin.0 == 0 && count == 0 { acknowledged } else { begin };
    let outstanding = next.distance_from(acknowledged);
    let skipped = begin.distance_from(acknowledged);
    let left = outstanding.checked_sub(skipped)?;
    let count = if count == 0 { left } else { count };
    (count <= left).then(|| (begin, begin.plus(count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_lies_within_what_is_outstanding() {
        let run = |begin, count| run(StatSn(u32::MAX - 1), StatSn(3), StatSn(begin), count);
        assert_eq!(run(0, 0), Some((StatSn(u32::MAX - 1), StatSn(3))));
        assert_eq!(run(u32::MAX, 3), Some((StatSn(u32::MAX), StatSn(2))));
        assert_eq!(run(1, 0), Some((StatSn(1), StatSn(3))));
        assert_eq!(run(1, 3), None);
        assert_eq!(run(4, 1), None);
        assert_eq!(run(u32::MAX - 2, 1), None);
        assert_eq!(run(1, u32::MAX), None);
    }
}
