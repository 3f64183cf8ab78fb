//! The order of a session's commands: ExpCmdSN must not go past one that has not arrived, and the device server gets
//! them in the order of their numbers (RFC 7143 §4.2.2.1).

use pdu::CmdSn;
use std::collections::BTreeSet;

/// The commands of one session at its target.
#[derive(Debug)]
pub(super) struct CommandOrder {
    /// All before this have arrived.
    next: CmdSn,
    /// Those beyond it that have arrived, by their distance from the first of the session.
    early: BTreeSet<u32>,
    first: CmdSn,
    /// The last that has reached the device server.
    handed_out: Option<CmdSn>,
}

impl CommandOrder {
    pub fn new(first: CmdSn) -> Self {
        Self { next: first, early: BTreeSet::new(), first, handed_out: None }
    }

    /// A command has arrived, or counts as if it had.
    pub fn arrive(&mut self, cmd_sn: CmdSn) {
        if cmd_sn != self.next {
            if self.next.precedes(cmd_sn) {
                self.early.insert(cmd_sn.distance_from(self.first));
            }
            return;
        }
        self.next = self.next.next();
        while self.early.remove(&self.next.distance_from(self.first)) {
            self.next = self.next.next();
        }
    }

    /// A reset of the whole target has arrived with this number: "the entire CmdSN space up to the CmdSN of the task
    /// management function can be 'plugged'" (§4.2.3.3 b).
    pub fn plug_before(&mut self, cmd_sn: CmdSn) {
        while self.next.precedes(cmd_sn) {
            self.arrive(self.next);
        }
    }

    /// The target says that it expects this next.
    ///
    /// # Errors
    /// It has delivered what has not arrived, or out of order.
    pub fn expects(&self, cmd_sn: CmdSn) -> Result<(), String> {
        if self.next.precedes(cmd_sn) {
            return Err(format!("ExpCmdSN {} although {} has not arrived", cmd_sn.0, self.next.0));
        }
        Ok(())
    }

    /// Whether a command that has arrived, with all before it, has not reached the device server.
    pub fn owes(&self, cmd_sn: CmdSn) -> bool {
        let is_handed_out = self.handed_out.is_some_and(|last| !last.precedes(cmd_sn));
        cmd_sn.precedes(self.next) && !is_handed_out
    }

    /// A command reaches the device server. Those between it and the last one may have been aborted on their way.
    ///
    /// # Errors
    /// One before it has not arrived, or it comes after one that follows it.
    pub fn hand_out(&mut self, cmd_sn: CmdSn) -> Result<(), String> {
        if !cmd_sn.precedes(self.next) {
            return Err(format!("CmdSN {} begins although {} has not arrived", cmd_sn.0, self.next.0));
        }
        match self.handed_out.replace(cmd_sn) {
            Some(last) if !last.precedes(cmd_sn) => {
                Err(format!("CmdSN {} begins after {}", cmd_sn.0, last.0))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_hole_is_not_expected() {
        let mut order = CommandOrder::new(CmdSn(u32::MAX));
        order.arrive(CmdSn(0));
        assert!(order.expects(CmdSn(1)).is_err());
        assert_eq!(order.expects(CmdSn(u32::MAX)), Ok(()));
        order.arrive(CmdSn(u32::MAX));
        assert_eq!(order.expects(CmdSn(1)), Ok(()));
        assert!(order.expects(CmdSn(2)).is_err());
    }

    #[test]
    fn a_reset_of_the_target_does_not_wait_for_commands_before_it() {
        let mut order = CommandOrder::new(CmdSn(7));
        order.arrive(CmdSn(8));
        order.plug_before(CmdSn(10));
        assert_eq!(order.expects(CmdSn(10)), Ok(()));
        assert!(order.expects(CmdSn(11)).is_err());
    }

    #[test]
    fn commands_begin_in_the_order_of_their_numbers_and_once() {
        let mut order = CommandOrder::new(CmdSn(7));
        (7..11).for_each(|cmd_sn| order.arrive(CmdSn(cmd_sn)));
        assert_eq!(order.hand_out(CmdSn(7)), Ok(()));
        assert_eq!(order.hand_out(CmdSn(9)), Ok(()), "8 was aborted");
        assert!(!order.owes(CmdSn(9)) && order.owes(CmdSn(10)) && !order.owes(CmdSn(11)));
        assert!(order.hand_out(CmdSn(8)).is_err());
        assert_eq!(order.hand_out(CmdSn(10)), Ok(()));
        assert!(order.hand_out(CmdSn(10)).is_err(), "twice");
        assert!(order.hand_out(CmdSn(11)).is_err(), "it has not arrived");
    }
}
