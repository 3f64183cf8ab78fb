//! The command window at the initiator: the times in which it was closed (RFC 7143 §4.2.2.1).

use super::intervals::Intervals;
use pdu::CmdSn;

/// The window of one session.
#[derive(Clone, Debug)]
pub(super) struct WindowWatch {
    /// The CmdSN of the next command.
    next: CmdSn,
    max_cmd_sn: CmdSn,
    pub closed: Intervals,
}

impl WindowWatch {
    /// The window after the login.
    pub fn new(now_ns: u64, next: CmdSn, max_cmd_sn: CmdSn) -> Self {
        let mut watch = Self { next, max_cmd_sn, closed: Intervals::default() };
        watch.note(now_ns);
        watch
    }

    /// A command of this number leaves.
    pub fn sent(&mut self, now_ns: u64, cmd_sn: CmdSn) {
        if !cmd_sn.precedes(self.next) {
            self.next = cmd_sn.next();
            self.note(now_ns);
        }
    }

    /// The target reports a new MaxCmdSN.
    pub fn told(&mut self, now_ns: u64, max_cmd_sn: CmdSn) {
        if self.max_cmd_sn.precedes(max_cmd_sn) {
            self.max_cmd_sn = max_cmd_sn;
            self.note(now_ns);
        }
    }

    fn note(&mut self, now_ns: u64) {
        self.closed.note(now_ns, self.max_cmd_sn.precedes(self.next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_closed_from_the_last_command_that_it_admits_until_it_moves() {
        let mut watch = WindowWatch::new(0, CmdSn(u32::MAX), CmdSn(0));
        watch.sent(10, CmdSn(u32::MAX));
        watch.sent(20, CmdSn(0));
        // A repetition changes nothing.
        watch.sent(25, CmdSn(u32::MAX));
        watch.told(30, CmdSn(0));
        watch.told(50, CmdSn(1));
        assert_eq!((watch.closed.count, watch.closed.total_ns), (1, 30));
    }
}
