//! The command window at the initiator: the next CmdSN, and the last one that the target admits (RFC 7143 §4.2.2.1).

use pdu::{CmdSn, Window};

/// CmdSN, ExpCmdSN and MaxCmdSN of one session.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandWindow {
    next: CmdSn,
    told: Window,
    /// The most commands that the target has admitted at once.
    width: u32,
}

impl CommandWindow {
    /// A window that is closed until the target has told it.
    pub(super) fn new(first: CmdSn) -> Self {
        let max_cmd_sn = CmdSn(first.0.wrapping_sub(1));
        Self { next: first, told: Window { exp_cmd_sn: first, max_cmd_sn }, width: 0 }
    }

    /// Takes the window that a PDU tells. Lanes overtake each other, so an older window is ignored.
    pub(super) fn update(&mut self, told: Window) {
        if told.max_cmd_sn.next().precedes(told.exp_cmd_sn) {
            return;
        }
        if self.told.max_cmd_sn.precedes(told.max_cmd_sn) {
            self.told.max_cmd_sn = told.max_cmd_sn;
        }
        if self.told.exp_cmd_sn.precedes(told.exp_cmd_sn) {
            self.told.exp_cmd_sn = told.exp_cmd_sn;
        }
        self.width = self.width.max(told.max_cmd_sn.next().distance_from(told.exp_cmd_sn));
    }

    /// The most commands that the target has admitted at once.
    pub(super) fn width(&self) -> u32 {
        self.width
    }

    /// Whether one more command may be sent.
    pub(super) fn is_open(&self) -> bool {
        !self.told.max_cmd_sn.precedes(self.next)
    }

    /// Takes the CmdSN of the next command.
    pub(super) fn take(&mut self) -> Option<CmdSn> {
        let taken = self.next;
        self.is_open().then(|| {
            self.next = taken.next();
            taken
        })
    }

    /// The next CmdSN, which an immediate request carries without taking it.
    pub(super) fn current(&self) -> CmdSn {
        self.next
    }

    /// The window that the target has told last.
    pub(super) fn told(&self) -> Window {
        self.told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(first: u32, exp_cmd_sn: u32, max_cmd_sn: u32) -> CommandWindow {
        let mut window = CommandWindow::new(CmdSn(first));
        window.update(Window { exp_cmd_sn: CmdSn(exp_cmd_sn), max_cmd_sn: CmdSn(max_cmd_sn) });
        window
    }

    #[test]
    fn a_window_is_closed_until_the_target_has_told_it() {
        assert_eq!(CommandWindow::new(CmdSn(7)).take(), None);
    }

    #[test]
    fn commands_are_numbered_up_to_the_last_one_that_the_window_admits() {
        let mut window = window(u32::MAX, u32::MAX, 1);
        assert_eq!(window.take(), Some(CmdSn(u32::MAX)));
        assert_eq!(window.take(), Some(CmdSn(0)));
        assert_eq!(window.take(), Some(CmdSn(1)));
        assert_eq!(window.take(), None);
        assert_eq!(window.current(), CmdSn(2));
    }

    #[test]
    fn news_that_was_overtaken_on_another_lane_is_ignored() {
        let mut window = window(1, 5, 9);
        window.update(Window { exp_cmd_sn: CmdSn(3), max_cmd_sn: CmdSn(7) });
        assert_eq!(window.told(), Window { exp_cmd_sn: CmdSn(5), max_cmd_sn: CmdSn(9) });
    }

    #[test]
    fn a_window_that_ends_before_it_begins_is_ignored() {
        let mut window = window(1, 5, 9);
        window.update(Window { exp_cmd_sn: CmdSn(20), max_cmd_sn: CmdSn(18) });
        assert_eq!(window.told(), Window { exp_cmd_sn: CmdSn(5), max_cmd_sn: CmdSn(9) });
        window.update(Window { exp_cmd_sn: CmdSn(20), max_cmd_sn: CmdSn(19) });
        assert_eq!(window.told(), Window { exp_cmd_sn: CmdSn(20), max_cmd_sn: CmdSn(19) });
    }
}
