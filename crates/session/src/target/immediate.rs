//! Immediate commands carry a CmdSN without taking it, so the window does not bound them (RFC 7143 §4.2.2.1). This
//! module does.

use super::session::Session;
use pdu::{LaneId, TaskManagementFunction};

/// Kinds of immediate commands that are counted apart. Of each kind, a lane may always have one (RFC 7143 §4.2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImmediateKind {
    /// TASK REASSIGN. It occupies nothing but its answer, and an initiator whose connection broke sends one for each
    /// command of that connection at once. The size of the command window is therefore its limit.
    TaskReassign,
    /// Any other task management request.
    TaskManagement,
    /// A SCSI command, Text Request or Logout Request.
    Other,
}

impl ImmediateKind {
    /// The kind of a task management request.
    pub(super) fn of(function: TaskManagementFunction) -> Self {
        match function {
            TaskManagementFunction::TaskReassign => Self::TaskReassign,
            _ => Self::TaskManagement,
        }
    }
}

/// A lane's immediate commands that have not been answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ImmediateCommands {
    task_reassign: u32,
    task_management: u32,
    other: u32,
}

impl ImmediateCommands {
    fn of(&mut self, kind: ImmediateKind) -> &mut u32 {
        match kind {
            ImmediateKind::TaskReassign => &mut self.task_reassign,
            ImmediateKind::TaskManagement => &mut self.task_management,
            ImmediateKind::Other => &mut self.other,
        }
    }

    fn total(self) -> u32 {
        self.task_reassign + self.task_management + self.other
    }
}

/// The place that a request occupies until it has been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ticket {
    /// A place in the command window.
    Numbered,
    /// One of its lane's immediate commands.
    Immediate(LaneId, ImmediateKind),
}

impl Session {
    /// Immediate commands that have not been answered.
    pub(super) fn immediate_commands(&self) -> u32 {
        self.lanes.values().map(|lane| lane.immediate.total()).sum()
    }

    /// Whether there is room for one more than the one that a lane may always have.
    fn has_room_for(&self, kind: ImmediateKind) -> bool {
        let reassignments: u32 = self.lanes.values().map(|lane| lane.immediate.task_reassign).sum();
        match kind {
            ImmediateKind::TaskReassign => reassignments < self.limits.window_commands,
            ImmediateKind::TaskManagement | ImmediateKind::Other => {
                self.immediate_commands() - reassignments < self.limits.immediate_commands_max
            }
        }
    }

    /// Admits an immediate command. `None` if it must be rejected.
    pub(super) fn admit_immediate(&mut self, lane: LaneId, kind: ImmediateKind) -> Option<Ticket> {
        let has_room = self.has_room_for(kind);
        let count = self.lanes.get_mut(lane)?.immediate.of(kind);
        if *count > 0 && !has_room {
            return None;
        }
        *count += 1;
        Some(Ticket::Immediate(lane, kind))
    }

    /// Frees the place of a request that has been answered, or will never be.
    pub(super) fn redeem(&mut self, ticket: Ticket) {
        match ticket {
            Ticket::Numbered => self.order.retire(),
            Ticket::Immediate(lane, kind) => {
                if let Some(lane) = self.lanes.get_mut(lane) {
                    let count = lane.immediate.of(kind);
                    *count = count.saturating_sub(1);
                }
            }
        }
    }
}
