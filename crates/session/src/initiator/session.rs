//! A session at the initiator: takes commands and functions, and reports the target's answers.

use super::ask::Ask;
use super::command_retry::Unacknowledged;
use super::command_window::CommandWindow;
use super::counters::Counters;
use super::event::{Event, LaneState, TaskId};
use super::lane::{Lane, Phase};
use super::lost_connections::LostConnections;
use super::outgoing::{Request, Turn};
use super::reassignments::Reassignments;
use super::task::{RequestTags, Task, Tasks};
use super::task_management::Function;
use crate::lanes::{Lanes, Route};
use crate::parameters::{Established, InitiatorLimits, LaneRole, SessionParameters};
use crate::peer_fault::{Offender, PeerFault, Question, Recovery};
use crate::seam::{Buffers, Destination, Digest, Endpoint, Fault, LaneLoss, Transmit};
use pdu::{CmdSn, Header, Instant, Itt, LaneId, TargetPdu};
use std::collections::{BTreeMap, VecDeque};

/// How far a session's life has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// The session takes commands.
    Open,
    /// The session waits for its started tasks, then for the answer to its logout.
    LoggingOut,
    /// The session's lanes are being closed and it sends nothing more. It still takes PDUs that arrive.
    Closing {
        /// Whether the session was logged out.
        orderly: bool,
    },
    /// The session has told its owner that it is over.
    Ended,
}

/// An initiator's session in full feature phase.
///
/// The driver asks [`Self::demand`] whenever a command was submitted or something was received, chooses a lane, and
/// calls [`Self::start`]; then it pulls from each lane that [`Endpoint::wants_transmit`]. A PDU received on one lane
/// can make other lanes want to transmit.
#[derive(Debug)]
pub struct Session {
    pub(super) parameters: SessionParameters,
    pub(super) limits: InitiatorLimits,
    pub(super) life: Life,
    pub(super) window: CommandWindow,
    pub(super) lanes: Lanes<Lane>,
    pub(super) tasks: Tasks,
    /// Tasks that were not started, in the order in which they were submitted.
    pub(super) queue: VecDeque<Itt>,
    /// Reads that miss Data-In which the target has sent, each with its last request for it.
    pub(super) incomplete: BTreeMap<Itt, Ask>,
    pub(super) unacknowledged: Unacknowledged,
    pub(super) lost: LostConnections,
    pub(super) reassignments: Reassignments,
    pub(super) functions: Vec<Function>,
    pub(super) request_tags: RequestTags,
    pub(super) events: VecDeque<Event>,
    /// Totals. [`Self::counters`] fills in the rest.
    pub(super) counters: Counters,
}

impl Session {
    /// A session without a lane. `first` is the CmdSN that its leading login carried ([`Established::cmd_sn`]).
    #[must_use]
    pub fn new(parameters: SessionParameters, limits: InitiatorLimits, first: CmdSn) -> Self {
        Self {
            parameters,
            limits,
            life: Life::Open,
            window: CommandWindow::new(first),
            lanes: Lanes::new(),
            tasks: Tasks::default(),
            queue: VecDeque::new(),
            incomplete: BTreeMap::new(),
            unacknowledged: Unacknowledged::default(),
            lost: LostConnections::default(),
            reassignments: Reassignments::default(),
            functions: Vec::new(),
            request_tags: RequestTags::default(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Starts the tags of tasks and requests at a value that `word`, 32 random bits, determines. A late answer to the
    /// former session then most likely names no task of this one.
    #[must_use]
    pub fn with_tags_from(mut self, word: u32) -> Self {
        self.tasks = Tasks::numbered_from(word);
        self.request_tags = RequestTags::numbered_from(word);
        self
    }

    /// Adds a connection whose login is done as a lane, at any time of the session's life. The lane's number must be
    /// new to this session. Its CID may be that of a connection that was reported lost, which it then reinstates (RFC
    /// 7143 §6.3.4). If the session is over or being logged out, the lane is closed at once, unless the session needs
    /// it after [`Event::ConnectionLost`].
    ///
    /// A split session takes commands once it has a lane for each role, and a lane whose role another has is closed at once.
    pub fn add_lane(&mut self, now: Instant, lane: LaneId, established: &Established) {
        let is_one_too_many =
            established.role != LaneRole::Whole && self.lanes.with_role(established.role).is_some();
        self.window.update(established.window);
        self.commands_acknowledged();
        self.lanes.add(lane, Lane::new(now, established));
        match self.life {
            Life::Open => {}
            Life::LoggingOut if self.is_recovering() => {
                self.lanes.values_mut().for_each(|lane| lane.phase = lane.phase.max(Phase::Draining));
            }
            Life::LoggingOut | Life::Closing { .. } | Life::Ended => {
                self.close_lane(lane, LaneLoss::LoggedOut, None);
            }
        }
        if is_one_too_many {
            self.close_lane(lane, LaneLoss::Broken, None);
        }
        self.lost.reinstate(established.cid);
        self.recover(now);
    }

    /// Ends the session without telling the target. The owner must close every lane; when all are closed, unanswered
    /// tasks are reported lost and [`Event::Ended`] follows.
    pub fn close(&mut self, _now: Instant) {
        self.fail();
    }

    /// The CmdSN that a login to add a connection to this session must carry (RFC 7143 §11.12.8).
    #[must_use]
    pub fn cmd_sn(&self) -> CmdSn {
        self.window.current()
    }

    /// The state of a lane for its driver or a placement policy; all zero for a lane that is gone.
    #[must_use]
    pub fn lane_state(&self, lane: LaneId) -> LaneState {
        let open = self.life == Life::Open;
        let state = self.lanes.get(lane).map(Lane::state).unwrap_or_default();
        let route = self.route_over(lane);
        // Where the data of reads travels on other lanes, it is that of the commands which are placed on this one.
        let apart = route.into_iter().flat_map(Route::lanes).filter(|other| *other != lane);
        let of_reads = apart.filter_map(|other| self.lanes.get(other)).map(Lane::state);
        let of_reads = of_reads.fold(state, |sum, other| LaneState {
            outstanding_in_bytes: sum.outstanding_in_bytes + other.outstanding_in_bytes,
            is_receiving: sum.is_receiving || other.is_receiving,
            ..sum
        });
        LaneState {
            accepts_commands: state.accepts_commands && open && route.is_some(),
            accepts_orphans: self.accepts_orphans(lane),
            ..of_reads
        }
    }

    /// What a lane carries; everything, if it is gone.
    #[must_use]
    pub fn lane_role(&self, lane: LaneId) -> LaneRole {
        self.lanes.get(lane).map(|lane| lane.role).unwrap_or_default()
    }

    /// A draining lane takes orphans only if no open lane can.
    fn accepts_orphans(&self, lane: LaneId) -> bool {
        let is_open = |lane: &Lane| lane.phase == Phase::Open;
        match self.lanes.get(lane).map(|lane| lane.phase) {
            Some(Phase::Open) => true,
            Some(Phase::Draining) => !self.lanes.values().any(is_open),
            Some(Phase::LoggingOut | Phase::Closing) | None => false,
        }
    }

    /// Bytes of a command's data that have not been transferred, in either direction. `None` for an ended task.
    #[must_use]
    pub fn unmoved_bytes(&self, task: TaskId) -> Option<u32> {
        self.tasks.get(Itt(task.0)).map(|task| task.unmoved_bytes)
    }

    /// The session's observable numbers.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let told = self.window.told();
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let queued_commands = count(self.queue.len());
        Counters {
            cmd_sn: self.window.current(),
            exp_cmd_sn: told.exp_cmd_sn,
            max_cmd_sn: told.max_cmd_sn,
            lanes: count(self.lanes.len()),
            queued_commands,
            outstanding_commands: self.tasks.len() - queued_commands,
            ..self.counters
        }
    }

    /// A lane for requests that may go on any.
    pub(super) fn lane_for_requests(&self) -> Option<LaneId> {
        let usable =
            |lane: &Lane| matches!(lane.phase, Phase::Open | Phase::Draining) && lane.role.takes_requests();
        let may_send = matches!(self.life, Life::Open | Life::LoggingOut);
        self.lanes.select(|lane| may_send && usable(lane)).next()
    }

    /// The task that a PDU on `lane` names. `None` if the task has ended: task management functions end tasks of all
    /// lanes, and PDUs on other lanes may cross their end.
    pub(super) fn task_on(&mut self, lane: LaneId, itt: Itt) -> Result<Option<&mut Task>, Fault> {
        self.reassignments.proven(itt, lane);
        let recovers = self.recovers();
        let Some(task) = self.tasks.get_mut(itt) else { return Ok(None) };
        match task.allegiance {
            Some(home) if home.command.is_here() && home.route.brings_to_initiator(lane) => Ok(Some(task)),
            // The PDU was sent before the task moved to another lane.
            Some(home) if !home.route.brings_to_initiator(lane) && recovers => Ok(None),
            Some(home) if home.command.is_here() => Err(PeerFault::TaskElsewhere.into()),
            _ => Err(PeerFault::TaskNotSent.into()),
        }
    }

    /// Takes the matching tasks out of the queue and reports them lost. Returns whether there were any.
    pub(super) fn lose_queued(&mut self, concerned: impl Fn(&Task) -> bool) -> bool {
        let is_concerned = |itt: &Itt| self.tasks.get(*itt).is_some_and(&concerned);
        let lost: Vec<Itt> = self.queue.iter().copied().filter(is_concerned).collect();
        lost.iter().for_each(|itt| self.lose_task(*itt));
        self.queue.retain(|itt| self.tasks.get(*itt).is_some());
        !lost.is_empty()
    }

    /// Tells the owner to close a lane, once.
    pub(super) fn close_lane(&mut self, lane: LaneId, loss: LaneLoss, fault: Option<Fault>) {
        if let Some(place) = self.lanes.get_mut(lane)
            && place.phase != Phase::Closing
        {
            place.phase = Phase::Closing;
            place.closing = Some(loss);
            self.events.push_back(Event::CloseLane { lane, loss, fault });
        }
    }

    /// Tells the owner to close every lane; the session is over when all are closed.
    pub(super) fn close_all(&mut self, loss: LaneLoss, orderly: bool) {
        if matches!(self.life, Life::Closing { .. } | Life::Ended) {
            return;
        }
        self.life = Life::Closing { orderly };
        let lanes = self.lanes.ids();
        lanes.into_iter().for_each(|lane| self.close_lane(lane, loss, None));
        if self.lanes.is_empty() {
            self.finish(orderly);
        }
    }

    /// Whether lost PDUs are sent again: error recovery level 1 or above (§7.1.5).
    pub(super) fn recovers(&self) -> bool {
        self.parameters.error_recovery_level >= 1
    }

    /// Judges an answer to a request that was not made or was answered before. Where requests are sent again, this is
    /// no fault.
    pub(super) fn late_answer(&self, question: Question) -> Result<(), Fault> {
        if self.recovers() { Ok(()) } else { Err(PeerFault::AnswerUnasked(question).into()) }
    }

    /// Gives a lane up, and with it the session unless the lane's tasks can move to another.
    pub(super) fn fail_lane(&mut self, lane: LaneId, fault: Fault) {
        self.close_lane(lane, LaneLoss::Broken, Some(fault));
        if !self.recovers_connections() {
            self.fail();
        }
    }

    /// Ends the lane that a fault occurred on, and the session if the fault goes that far.
    fn judge<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(Fault::Peer(fault)) = result
            && self.recovers_connections()
            && fault.recovery(Offender::Target) == Recovery::Session
        {
            self.fail();
        }
        result
    }

    /// Ends the session after a loss that this error recovery level cannot repair (§7.1.5).
    pub(super) fn fail(&mut self) {
        self.close_all(LaneLoss::Broken, false);
    }

    /// Ends the session after its last lane is gone: nothing can be pulled or arrive.
    pub(super) fn finish(&mut self, orderly: bool) {
        self.queue.clear();
        self.functions.clear();
        self.unacknowledged.clear();
        self.lost.clear();
        let lost: Vec<Itt> = self.tasks.iter().map(|task| task.itt).collect();
        lost.into_iter().for_each(|itt| self.lose_task(itt));
        self.life = Life::Ended;
        self.events.push_back(Event::Ended { orderly });
    }

    /// The PDU of a request that is not a command, when its turn has come.
    pub(super) fn pull_request(&mut self, lane: LaneId, request: Request) -> Option<Transmit> {
        self.counters.retransmissions += u64::from(request.asks_for_lost_pdus());
        if let Request::Nop(pdu) = &request {
            self.ping_leaves(lane, pdu.itt);
        }
        let exp_stat_sn = self.lanes.acknowledge_by(lane, &request);
        self.lanes.get_mut(lane)?.pull_request(request, exp_stat_sn)
    }

    fn place(&mut self, lane: LaneId, pdu: &TargetPdu, bytes: u32) -> Result<Destination, Fault> {
        match pdu {
            TargetPdu::DataIn(pdu) => self.place_data_in(lane, pdu),
            TargetPdu::ScsiResponse(pdu) => self.place_response(lane, pdu),
            TargetPdu::TextResponse(_) | TargetPdu::AsyncMessage(_) | TargetPdu::Reject(_) => {
                Ok(Destination::Inline { bytes })
            }
            // Returned ping data. This side's pings carry none.
            TargetPdu::NopIn(_) => Ok(Destination::Discard { bytes }),
            TargetPdu::TaskManagementResponse(_) | TargetPdu::LogoutResponse(_) | TargetPdu::R2t(_) => {
                Ok(Destination::None)
            }
            TargetPdu::LoginResponse(_) => Err(PeerFault::LoginInFullFeature.into()),
        }
    }

    fn take_header(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        digest: Digest,
    ) -> Result<Destination, Fault> {
        let bytes = header.data_segment_bytes();
        let recovers = self.recovers();
        let Some(place) = self.lanes.get_mut(lane) else { return Ok(Destination::Discard { bytes }) };
        if digest == Digest::Bad && !recovers {
            return Err(Fault::HeaderDigest);
        }
        place.liveness.heard(now);
        if digest == Digest::Bad {
            // The PDU is a hole. The next PDU of its sequence shows what it was (§7.8).
            return Ok(Destination::Discard { bytes });
        }
        if bytes > place.connection.receive_segment_bytes_max {
            return Err(PeerFault::SegmentTooLong.into());
        }
        let pdu = TargetPdu::parse(header)?;
        if !brings(place.role, &pdu) {
            return Err(PeerFault::LaneMisused.into());
        }
        self.window.update(pdu.window());
        self.commands_acknowledged();
        let destination = self.place(lane, &pdu, bytes)?;
        if bytes == 0 {
            self.receive(now, lane, &pdu, &[])?;
            return Ok(Destination::None);
        }
        if let Some(place) = self.lanes.get_mut(lane) {
            place.incoming = Some(pdu);
        }
        Ok(destination)
    }

    fn take_data(&mut self, now: Instant, lane: LaneId, inline: &[u8], digest: Digest) -> Result<(), Fault> {
        let Some(place) = self.lanes.get_mut(lane) else { return Ok(()) };
        place.liveness.heard(now);
        let Some(pdu) = place.incoming.take() else { return Ok(()) };
        if let TargetPdu::DataIn(pdu) = &pdu {
            place.inflow.bring(now, pdu.data_segment_bytes, true);
        }
        self.events.extend(place.held.take().map(Event::Release));
        if digest == Digest::Bad {
            return self.lose_pdu(lane, &pdu);
        }
        self.receive(now, lane, &pdu, inline)
    }

    /// Takes a PDU that has arrived with its data segment.
    fn receive(&mut self, now: Instant, lane: LaneId, pdu: &TargetPdu, inline: &[u8]) -> Result<(), Fault> {
        match pdu {
            TargetPdu::DataIn(pdu) => self.receive_data_in(now, lane, pdu)?,
            TargetPdu::R2t(pdu) => self.receive_r2t(lane, pdu)?,
            TargetPdu::ScsiResponse(pdu) => self.receive_response(lane, pdu, inline)?,
            TargetPdu::NopIn(pdu) => self.receive_nop_in(now, lane, pdu)?,
            TargetPdu::TaskManagementResponse(pdu) => self.receive_task_management(now, lane, pdu)?,
            TargetPdu::TextResponse(pdu) => self.receive_text(now, lane, pdu, inline)?,
            TargetPdu::LogoutResponse(pdu) => self.receive_logout(now, lane, pdu)?,
            TargetPdu::AsyncMessage(pdu) => self.receive_async(now, lane, pdu, inline)?,
            TargetPdu::Reject(pdu) => self.receive_reject(now, lane, pdu, inline)?,
            TargetPdu::LoginResponse(_) => {}
        }
        self.settle(now, lane);
        self.recover(now);
        Ok(())
    }
}

/// Whether a lane with this role brings such PDUs. All bring answers to their own pings.
fn brings(role: LaneRole, pdu: &TargetPdu) -> bool {
    match role {
        LaneRole::Whole | LaneRole::Responses => true,
        LaneRole::Requests => matches!(pdu, TargetPdu::NopIn(_)),
        LaneRole::DataIn => match pdu {
            TargetPdu::DataIn(pdu) => pdu.status.is_none(),
            pdu => matches!(pdu, TargetPdu::NopIn(_)),
        },
    }
}

impl Endpoint for Session {
    type Event = Event;

    fn receive_header(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        digest: Digest,
        _buffers: &mut dyn Buffers,
    ) -> Result<Destination, Fault> {
        let taken = self.take_header(now, lane, header, digest);
        self.judge(taken)
    }

    fn receive_data(
        &mut self,
        now: Instant,
        lane: LaneId,
        inline: &[u8],
        digest: Digest,
    ) -> Result<(), Fault> {
        let taken = self.take_data(now, lane, inline, digest);
        self.judge(taken)
    }

    fn poll_transmit(&mut self, now: Instant, lane: LaneId, budget_bytes: u32) -> Option<Transmit> {
        if !self.wants_transmit(lane) {
            return None;
        }
        let may_cut = budget_bytes >= super::data_out::BUDGET_BYTES_MIN;
        loop {
            let place = self.lanes.get_mut(lane)?;
            let transmit = match place.outgoing.take(may_cut)? {
                Turn::Request(Request::Command(itt)) => self.pull_command(now, lane, itt, budget_bytes),
                Turn::Request(Request::Snack(snack, Some(itt))) => self.pull_snack(lane, snack, itt),
                Turn::Request(request) => self.pull_request(lane, request),
                Turn::Data(itt) => self.pull_data_out(lane, itt, budget_bytes),
            };
            // A task that ended while it was queued has nothing to send.
            let Some(transmit) = transmit else { continue };
            self.lanes.get_mut(lane)?.pulled(&transmit);
            return Some(transmit);
        }
    }

    fn wants_transmit(&self, lane: LaneId) -> bool {
        let may_send = matches!(self.life, Life::Open | Life::LoggingOut);
        let wants = |lane: &Lane| lane.phase != Phase::Closing && !lane.outgoing.is_empty();
        may_send && self.lanes.get(lane).is_some_and(wants)
    }

    fn transmitted(&mut self, now: Instant, lane: LaneId, pdus: u32) {
        if let Some(place) = self.lanes.get_mut(lane) {
            place.left(now, pdus);
        }
    }

    fn heard(&mut self, now: Instant, lane: LaneId) {
        if let Some(place) = self.lanes.get_mut(lane) {
            place.liveness.heard(now);
        }
    }

    fn doubts(&self, lane: LaneId) -> bool {
        self.lanes.get(lane).is_some_and(|lane| lane.phase != Phase::Closing && lane.liveness.is_looking())
    }

    fn delivered(&mut self, now: Instant, lane: LaneId, bytes: u64) {
        if let Some(place) = self.lanes.get_mut(lane) {
            place.liveness.delivered(now, bytes);
        }
    }

    fn lane_lost(&mut self, now: Instant, lane: LaneId, _loss: LaneLoss) {
        let Some(place) = self.lanes.lose(lane) else { return };
        self.events.extend(place.held.map(Event::Release));
        if self.leaves_orphans(&place) {
            return self.lose_connection(now, lane, &place);
        }
        if !place.is_done() && !self.is_leaving() {
            self.fail();
        }
        if self.lanes.is_empty() {
            match self.life {
                Life::Closing { orderly } => self.finish(orderly),
                Life::LoggingOut => self.finish(true),
                Life::Open | Life::Ended => {}
            }
        } else if self.life == Life::LoggingOut {
            self.settle_session(now);
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_deadline()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.expire_timers(now);
        self.recover(now);
    }
}
