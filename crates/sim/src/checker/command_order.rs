//! Which numbered commands have arrived: ExpCmdSN must not go past one that has not (RFC 7143 §4.2.2.1).

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
}

impl CommandOrder {
    pub fn new(first: CmdSn) -> Self {
        Self { next: first, early: BTreeSet::new(), first }
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
}
