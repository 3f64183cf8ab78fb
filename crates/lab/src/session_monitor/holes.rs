//! Holes in the order of commands at a target: some have arrived and must wait for one that has not (RFC 7143
//! §4.2.2.1).

use super::intervals::Intervals;
use pdu::CmdSn;
use std::collections::HashSet;

/// More than any initiator has outstanding.
const EARLY_MAX: usize = 1 << 16;

/// The order of one session.
#[derive(Clone, Debug)]
pub(super) struct Holes {
    /// The next command that can begin.
    next: CmdSn,
    /// Commands that have arrived out of order and have not begun.
    early: HashSet<u32>,
    /// Numbered requests that begin unobserved, because they are not SCSI commands.
    others: HashSet<u32>,
    pub open: Intervals,
}

impl Holes {
    pub fn new(first: CmdSn) -> Self {
        Self { next: first, early: HashSet::new(), others: HashSet::new(), open: Intervals::default() }
    }

    /// The header of a command has arrived.
    pub fn arrived(&mut self, now_ns: u64, cmd_sn: CmdSn) {
        if self.next.precedes(cmd_sn) && self.early.len() < EARLY_MAX {
            self.early.insert(cmd_sn.0);
            self.note(now_ns);
        }
    }

    /// Another numbered request has arrived.
    pub fn other_arrived(&mut self, now_ns: u64, cmd_sn: CmdSn) {
        if !cmd_sn.precedes(self.next) && self.others.len() < EARLY_MAX {
            self.others.insert(cmd_sn.0);
            self.go_on(now_ns);
        }
    }

    /// A command begins, and so every earlier one has.
    pub fn begun(&mut self, now_ns: u64, cmd_sn: CmdSn) {
        self.early.remove(&cmd_sn.0);
        if !cmd_sn.precedes(self.next) {
            self.next = cmd_sn.next();
        }
        self.go_on(now_ns);
    }

    fn go_on(&mut self, now_ns: u64) {
        while self.others.remove(&self.next.0) {
            self.next = self.next.next();
        }
        self.early.remove(&self.next.0);
        self.note(now_ns);
    }

    fn note(&mut self, now_ns: u64) {
        self.open.note(now_ns, !self.early.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_lasts_from_the_first_early_command_until_the_one_before_it_begins() {
        let mut holes = Holes::new(CmdSn(7));
        holes.arrived(10, CmdSn(9));
        holes.arrived(20, CmdSn(8));
        holes.arrived(50, CmdSn(7));
        holes.begun(50, CmdSn(7));
        holes.begun(51, CmdSn(8));
        holes.begun(52, CmdSn(9));
        assert_eq!((holes.open.count, holes.open.total_ns), (1, 41));
    }

    #[test]
    fn commands_in_order_leave_no_hole() {
        let mut holes = Holes::new(CmdSn(u32::MAX));
        for (now_ns, cmd_sn) in [(10, u32::MAX), (20, 0), (30, 1)] {
            holes.arrived(now_ns, CmdSn(cmd_sn));
            holes.begun(now_ns + 5, CmdSn(cmd_sn));
        }
        assert_eq!(holes.open.count, 0);
    }

    #[test]
    fn a_request_that_is_no_command_fills_its_place() {
        let mut holes = Holes::new(CmdSn(1));
        holes.arrived(10, CmdSn(2));
        holes.other_arrived(30, CmdSn(1));
        holes.begun(31, CmdSn(2));
        assert_eq!((holes.open.count, holes.open.total_ns), (1, 20));
    }
}
