//! The state of one logical unit, over all paths.

use super::flush::Flush;
use super::path::SharedTurn;
use super::queue::Queue;
use super::slots::OperationId;
use crate::durability::Durability;
use crate::path_id::PathId;
use crate::reservation::{Reservation, Unheld};
use crate::write_fence::{WriteFence, WriteId};
use crate::{TargetError, Unit};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The knowledge of one unit, and the commands that wait for it.
pub(crate) struct UnitState {
    pub unit: Arc<Unit>,
    /// Commands for any path that carries this unit.
    pub(super) queue: Queue,
    pub(super) fence: WriteFence,
    /// The operation of each write in the fence.
    pub(super) writes: HashMap<WriteId, OperationId>,
    pub durability: Durability,
    /// SYNCHRONIZE CACHE is under way: other flushes wait.
    pub(super) is_flushing: bool,
    /// Flushes that wait for the writes before them, in order.
    pub(super) flushes: VecDeque<Flush>,
    /// The unit refused WRITE SAME, so zeroes are written out.
    pub write_same_refused: bool,
    /// The path over which it was opened: it may be reserved there, or reached badly, if there is no better.
    pub opened_over: PathId,
    /// The reservation that all paths must be registered for before they carry the unit's I/O.
    pub reservation: Option<Reservation>,
    /// What it said of its reservations when it was opened, for the first claim.
    pub unheld: Option<Unheld>,
    /// Registrations of this initiator change one after the other.
    pub reserving: SharedTurn,
    /// It turned out to be another: nothing is done to it any more.
    pub refused: Option<TargetError>,
}

impl UnitState {
    pub fn new(unit: Arc<Unit>, opened_over: PathId, unheld: Option<Unheld>) -> Self {
        Self {
            unit,
            queue: Queue::default(),
            fence: WriteFence::default(),
            writes: HashMap::new(),
            durability: Durability::default(),
            is_flushing: false,
            flushes: VecDeque::new(),
            write_same_refused: false,
            opened_over,
            reservation: None,
            unheld,
            reserving: SharedTurn::default(),
            refused: None,
        }
    }
}
