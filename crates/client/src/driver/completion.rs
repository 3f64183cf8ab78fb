//! The end of a command: success, a retry, or an error.

use super::flush::SYNCHRONIZE_CACHE;
use super::path::Closing;
use super::request::Request;
use super::slots::RequestId;
use super::{Driver, Plan};
use crate::path_acceptance::{Change, change_told};
use crate::path_id::PathId;
use crate::report::PathState;
use crate::retry::{CommandKind, Ending, Retry};
use crate::{Error, TargetError, memory};
use pdu::{Duration, Instant, Lun};
use scsi::Status;
use scsi::client::SenseData;
use session::initiator::{Completion, Data, Event, TaskId};
use session::seam::PayloadRef;

pub(super) const WRITE_SAME: &str = "WRITE SAME";

/// The most consecutive unit attentions, or abandonments by the target, of one command. A target may have several unit
/// attentions to report (reset, changed LUNs, changed capacity), but not endlessly many.
const ATTEMPTS_MAX: u32 = 32;

/// The first pause before a declined command is sent again; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The time for the target to close a connection that it has logged out. It does so with its answer (RFC 7143 §11.14).
const TARGET_CLOSES_WITHIN: Duration = Duration::from_millis(500);

impl Driver {
    /// Processes the events of a path's session.
    pub(super) fn drain_events(&mut self, at: PathId, now: Instant) {
        while let Some(event) = self.paths[at].core.as_mut().and_then(session::seam::Endpoint::poll_event) {
            match event {
                Event::Completed(completion) => self.completed(at, &completion, now),
                Event::Lost { task, started } => self.lost(at, task, started, now),
                Event::Release(buffer) => self.released(buffer),
                Event::CloseLane { lane, loss, fault } => {
                    let path = &mut self.paths[at];
                    if let Some(fault) = fault {
                        tracing::warn!(path = %path.id, %lane, %fault, "a connection is given up");
                    }
                    let closing = Closing { loss, by: now + TARGET_CLOSES_WITHIN };
                    if let Some(state) = path.lane_mut(lane) {
                        state.closing = Some(closing);
                    }
                    path.wakers.wake(lane);
                }
                Event::Async(message) => {
                    tracing::info!(path = %self.paths[at].id, code = ?message.code, "the target sent a message");
                    self.paths[at].take_notice(message.code, now);
                    if let Some(sense) = SenseData::parse(&message.sense) {
                        self.told(at, message.lun, &sense, now);
                    }
                }
                Event::Ended { orderly } => self.path_ended(at, orderly),
                Event::ConnectionLost { lane, cid, not_before, .. } => {
                    self.connection_lost(at, (lane, cid), not_before, now);
                }
                Event::FunctionDone { function, response } => self.function_done(at, function, response, now),
                // This driver never requests these.
                Event::SendTargets { .. } | Event::SendTargetsRefused { .. } => {}
            }
        }
        if self.close_where_stranded(at, now) {
            self.drain_events(at, now);
        }
    }

    fn completed(&mut self, at: PathId, completion: &Completion, now: Instant) {
        let Some(key) = self.paths[at].tasks.remove(&completion.task) else { return };
        let sense = SenseData::parse(&completion.sense);
        let lun = self.requests[key].lun;
        match Ending::of(completion.delivered, completion.status, sense.as_ref()) {
            None => self.succeeded(self.paths[at].id, key, completion),
            Some(ending) => {
                if let Some(sense) = &sense {
                    self.told(at, lun, sense, now);
                    // Some of what a unit says of itself is true only when it is ready.
                    let is_about_now = sense.is_not_ready() && self.requests[key].is_question();
                    self.paths[at].changes_told += u64::from(is_about_now);
                }
                let ending = if self.is_fenced_off(key, completion) {
                    self.doubt(at, lun, Change::Reservations, now);
                    self.requests[key].ending_of_conflict()
                } else {
                    ending
                };
                self.forced_operation_failed(key, ending, completion.status, sense.as_ref());
                let command = self.command_name(key);
                let error = match sense {
                    Some(sense) => TargetError::CheckCondition { command, lun, sense },
                    None => TargetError::Status {
                        command,
                        lun,
                        status: completion.delivered.then_some(completion.status),
                    },
                };
                self.failed(at, key, ending, error.into(), now);
            }
        }
    }

    pub(super) fn command_name(&self, key: RequestId) -> &'static str {
        self.operations[self.requests[key].operation].command
    }

    /// Handles a unit's report besides, or instead of, the status of a command.
    fn told(&mut self, at: PathId, lun: Lun, sense: &SenseData, now: Instant) {
        if sense.deferred {
            tracing::warn!(%lun, %sense, "writes that were answered may be lost");
        } else if sense.is_unit_attention() {
            tracing::debug!(%lun, %sense, "unit attention");
        }
        if let Some(unit) = self.units.get_mut(&lun) {
            unit.durability.told(sense);
        }
        if let Some(change) = change_told(sense) {
            let is_about_others = change == Change::Reservations && self.reservation(lun).is_none();
            if !is_about_others {
                self.doubt(at, lun, change, now);
            }
        }
    }

    /// Whether the target refused a command as if this initiator's reservation were another's: the path must be proven
    /// again, which finds out whose it is.
    fn is_fenced_off(&self, key: RequestId, completion: &Completion) -> bool {
        let request = &self.requests[key];
        completion.delivered
            && completion.status == Status::ReservationConflict.code()
            && !request.is_question()
            && self.reservation(request.lun).is_some()
    }

    /// A command failed. If it was forced to the medium (a flush, or a write with FUA), its error may report the loss
    /// of other writes, which no later flush will repeat.
    fn forced_operation_failed(
        &mut self,
        key: RequestId,
        ending: Ending,
        status: u8,
        sense: Option<&SenseData>,
    ) {
        let request = &self.requests[key];
        let Some(unit) = self.units.get_mut(&request.lun) else { return };
        let is_checked = ending == Ending::Failed && status == Status::CheckCondition.code();
        let is_forced = match request.kind {
            CommandKind::Write => is_checked && (!request.dirties || !unit.unit.mode.write_cache),
            // Nobody knows whether a caller's own command was.
            CommandKind::Once => is_checked && request.dirties,
            // One that was given up may have failed before.
            CommandKind::Flush | CommandKind::FlushForOthers => is_checked || ending == Ending::GivenUp,
            CommandKind::Read => false,
        };
        if is_forced {
            unit.durability.forced_operation_failed(sense);
        }
    }

    fn succeeded(&mut self, path: PathId, key: RequestId, completion: &Completion) {
        // The cache that was emptied may be another unit's.
        if self.hold_in_doubt(key) {
            return;
        }
        let request = &self.requests[key];
        let lun = request.lun;
        if let Some(unit) = self.units.get_mut(&lun) {
            if request.dirties {
                let generation = unit.durability.generation();
                self.operations[request.operation].acknowledged_in.get_or_insert(generation);
                unit.durability.acknowledged(path, request.losses);
            }
            if let Some(mark) = request.flush {
                unit.durability.flushed(path, mark);
            }
        }
        let (expected, found) = match request.data {
            Data::In(payload) if request.exact => (payload.bytes, completion.data_in_bytes),
            // A target may accept part of a write, and report GOOD with a residual count (RFC 7143 §11.4.5.1).
            Data::Out(payload) if request.exact => {
                let used = payload.bytes.saturating_sub(completion.underflow_bytes);
                (payload.bytes, used.min(completion.data_out_bytes))
            }
            _ => (0, 0),
        };
        let result = if found < expected {
            Err(TargetError::Short { command: self.command_name(key), lun, found, expected }.into())
        } else {
            self.answered_bytes += u64::from(request.data.out_bytes()) + u64::from(request.data.in_bytes());
            Ok(completion.data_in_bytes)
        };
        self.end_request(key, result);
    }

    fn failed(&mut self, at: PathId, key: RequestId, ending: Ending, error: Error, now: Instant) {
        if self.substitute(key, &error) {
            return;
        }
        let patience = self.decline_patience;
        let request = &mut self.requests[key];
        let retry = if request.is_in_order() { Retry::Never } else { ending.retry(request.kind) };
        match retry {
            Retry::AtOnce if ending == Ending::Told => {
                request.attempts += 1;
                if request.attempts > ATTEMPTS_MAX {
                    return self.end_request(key, Err(error));
                }
                self.enqueue(key);
            }
            Retry::AtOnce => self.repeat(key),
            Retry::AfterPause => {
                let since = *request.declined_since.get_or_insert(now);
                if now.saturating_duration_since(since) >= patience {
                    return self.end_request(key, Err(error));
                }
                let pause = PAUSE_MIN.saturating_mul(1 << request.attempts.min(10)).min(PAUSE_MAX);
                request.attempts += 1;
                self.retries += 1;
                self.pauses.push(now + pause, key);
            }
            Retry::AfterReinstatement if self.paths[at].state != PathState::Gone => {
                self.paths[at].stranded.push(key);
            }
            Retry::AfterReinstatement => self.give_up_unknown(key),
            Retry::Never if ending == Ending::Unknown => self.give_up_unknown(key),
            Retry::Never => self.end_request(key, Err(error)),
        }
    }

    /// The nexus was lost with this command outstanding.
    fn lost(&mut self, at: PathId, task: TaskId, started: bool, now: Instant) {
        let Some(key) = self.paths[at].tasks.remove(&task) else { return };
        self.note_loss(at, task);
        let (command, lun) = (self.command_name(key), self.requests[key].lun);
        if !started && !self.requests[key].is_in_order() && self.hold_in_doubt(key) {
            return;
        }
        if self.requests[key].path.is_some() {
            let id = self.paths[at].id;
            if let Some(unit) = self.units.get_mut(&lun).filter(|_| self.requests[key].flush.is_some()) {
                // The driver will hear of the session's end next; the flush must know of it already.
                unit.durability.nexus_lost(id);
            }
            // Another nexus cannot answer a request to this one.
            return match self.unanswered(key) {
                Some(error) => self.end_request(key, Err(error)),
                None => self.give_up_unknown(key),
            };
        }
        let ending = if started { Ending::Unknown } else { Ending::NotStarted };
        self.failed(at, key, ending, Error::OutcomeUnknown { command, lun }, now);
    }

    /// Ends a command whose outcome will never be known. If it writes, its blocks stay closed.
    pub(super) fn give_up_unknown(&mut self, key: RequestId) {
        let (command, lun) = (self.command_name(key), self.requests[key].lun);
        let request = &self.requests[key];
        let operation = &mut self.operations[request.operation];
        operation.sealed |= operation.write.is_some();
        self.end_request(key, Err(Error::OutcomeUnknown { command, lun }));
    }

    fn path_ended(&mut self, at: PathId, orderly: bool) {
        let path = &mut self.paths[at];
        let (id, asked) = (path.id, path.is_logging_out());
        path.end();
        let own = path.take_own();
        // A session that broke while it was logged out may have left writes behind: only its return proves them dead.
        let is_over = path.state == PathState::Gone || asked && path.stranded.is_empty();
        path.state = if is_over { PathState::Gone } else { PathState::Connecting };
        path.ring();
        self.paths_changed = true;
        let connected = || self.paths.iter().filter(|path| path.is_connected());
        for (lun, unit) in &mut self.units {
            match connected().find(|path| path.accepted.contains(lun)) {
                // If this end did not ask for the logout, the target did, perhaps to restart.
                Some(heir) if orderly && asked => unit.durability.hand_over(id, heir.id),
                _ => unit.durability.nexus_lost(id),
            }
        }
        if asked {
            tracing::debug!(path = %id, orderly, "session logged out");
        } else {
            tracing::warn!(path = %id, orderly, "session lost");
        }
        own.into_iter().for_each(|key| self.give_up_unknown(key));
        if is_over {
            self.end_unreachable();
        }
    }

    /// Ends a command, and its operation if it was the last one.
    pub(super) fn end_request(&mut self, key: RequestId, result: Result<u32, Error>) {
        let Some(Request { operation: owner, .. }) = self.requests.remove(key) else { return };
        let Some(operation) = self.operations.get_mut(owner) else { return };
        operation.pieces -= 1;
        match result {
            Ok(bytes) => operation.data_in_bytes += bytes,
            Err(error) => drop(operation.error.get_or_insert(error)),
        }
        self.finish_if_done(owner);
    }

    /// Replaces a command that the device turns out not to implement. `false` if there is no replacement.
    fn substitute(&mut self, key: RequestId, error: &Error) -> bool {
        if !error.sense().is_some_and(SenseData::is_unsupported) {
            return false;
        }
        let request = &self.requests[key];
        let Some(unit) = self.units.get_mut(&request.lun) else { return false };
        match self.operations[request.operation].command {
            // Without a cache, a flush has nothing to do.
            SYNCHRONIZE_CACHE if !unit.unit.mode.write_cache => {
                if let (Some(path), Some(mark)) = (request.path, request.flush) {
                    unit.durability.flushed(path, mark);
                }
                self.end_request(key, Ok(0));
                true
            }
            WRITE_SAME => {
                unit.write_same_refused = true;
                self.write_zeroes_out(key)
            }
            _ => false,
        }
    }

    /// Replaces a WRITE SAME by WRITEs of zeroes.
    fn write_zeroes_out(&mut self, key: RequestId) -> bool {
        let request = &self.requests[key];
        let (owner, lun, extent) = (request.operation, request.lun, request.extent);
        let Some(unit) = self.units.get(&lun).map(|unit| unit.unit.clone()) else { return false };
        let Ok(zeroes) =
            memory::zeroes(self.buffers.budget(), extent.blocks.0 * u64::from(unit.block_bytes()))
        else {
            return false;
        };
        let zeroes_bytes = zeroes.len();
        let buffer = self.lend(owner, zeroes);
        let pieces = Plan::zero_writes(&unit, extent, zeroes_bytes);
        self.operations[owner].pieces += pieces.len();
        for piece in pieces {
            let payload = PayloadRef { buffer, offset_bytes: 0, bytes: piece.bytes };
            let request = self.requests.insert(Request {
                kind: CommandKind::Write,
                cdb: piece.cdb,
                data: Data::Out(payload),
                extent: piece.extent,
                exact: piece.exact,
                dirties: true,
                ..Request::new(owner, lun)
            });
            self.enqueue(request);
        }
        self.end_request(key, Ok(0));
        true
    }
}
