//! A session at the target: takes the initiator's PDUs, and sends the answers.

use super::command_order::CommandOrder;
use super::counters::Counters;
use super::departures::Departures;
use super::event::{Event, TaskId};
use super::lane::{Lane, Phase};
use super::logout::Logout;
use super::order_waits::OrderWaits;
use super::r2t::TransferTags;
use super::request::{Content, Incoming, Numbered, discard};
use super::response_fence::Fences;
use super::sent_status::SentStatus;
use super::task::{Answer, Stage, Tasks};
use super::task_management::Functions;
use crate::lanes::Lanes;
use crate::parameters::{Established, LaneRole, SessionParameters, SessionType, TargetLimits};
use crate::peer_fault::PeerFault;
use crate::seam::{Buffers, Destination, Digest, Endpoint, Fault, LaneLoss, Transmit};
use pdu::{CmdSn, Header, InitiatorPdu, Instant, LaneId, RejectReason, StatSn};
use std::collections::VecDeque;

/// The most answered tasks that are kept until their response is acknowledged, on all lanes and one that replaces
/// another: half of the tasks that names can tell apart ([`super::task`]). Each of sixty-four lanes may have 504, more
/// than a long path holds.
const KEPT_TASKS_MAX: u32 = 1 << 15;

/// Whether the session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Open,
    /// The session ends when its last task has been responded to and its last lane is gone.
    Ending {
        orderly: bool,
    },
    Ended,
}

/// A target's session in full feature phase.
#[derive(Debug)]
pub struct Session {
    pub(super) parameters: SessionParameters,
    pub(super) limits: TargetLimits,
    pub(super) target_name: String,
    pub(super) standing: Standing,
    pub(super) lanes: Lanes<Lane>,
    pub(super) order: CommandOrder<Numbered>,
    pub(super) order_waits: OrderWaits,
    pub(super) tasks: Tasks,
    /// Tasks that wait for free buffers.
    pub(super) starved: VecDeque<TaskId>,
    pub(super) functions: Functions,
    pub(super) fences: Fences,
    pub(super) logouts: Vec<Logout>,
    /// When to close lanes that were asked to log out.
    pub(super) logout_deadline: Option<Instant>,
    pub(super) transfer_tags: TransferTags,
    /// When to look for late Data-Out, while some is owed.
    pub(super) sequence_watch: Option<Instant>,
    /// Lost connections whose tasks go on.
    pub(super) departed: Departures,
    /// Lost lanes whose tasks were terminated and have not ended at the driver.
    pub(super) restless: Vec<LaneId>,
    /// Bytes of inline data held; see [`super::request::INLINE_BYTES_MAX`].
    pub(super) inline_bytes: usize,
    /// Bytes of Data-In that were sent and are kept; see [`TargetLimits::retained_bytes_max`].
    pub(super) retained_bytes: usize,
    /// The number of pieces of Data-In ever kept. It orders the pieces by age.
    pub(super) kept_pieces: u64,
    pub(super) events: VecDeque<Event>,
    pub(super) counters: Counters,
}

impl Session {
    /// A session without a lane. `first` is the CmdSN that its leading login carried.
    #[must_use]
    pub fn new(parameters: SessionParameters, limits: TargetLimits, first: CmdSn) -> Self {
        Self {
            parameters,
            limits,
            target_name: String::new(),
            standing: Standing::Open,
            lanes: Lanes::new(),
            order: CommandOrder::new(first, limits.window_commands),
            order_waits: OrderWaits::default(),
            tasks: Tasks::default(),
            starved: VecDeque::new(),
            functions: Functions::default(),
            fences: Fences::default(),
            logouts: Vec::new(),
            logout_deadline: None,
            transfer_tags: TransferTags::default(),
            sequence_watch: None,
            departed: Departures::default(),
            restless: Vec::new(),
            inline_bytes: 0,
            retained_bytes: 0,
            kept_pieces: 0,
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Whether the initiator has asked for the lane's logout, and need not wait for the answer.
    #[must_use]
    pub fn is_leaving(&self, lane: LaneId) -> bool {
        let leaves = |lane: &Lane| matches!(lane.phase, Phase::LoggingOut | Phase::LoggedOut);
        self.lanes.get(lane).is_some_and(leaves)
    }

    /// Adds a connection whose login is done as a lane. The lane's number must be new to this session.
    ///
    /// The login implicitly logs out an older lane of the same CID (RFC 7143 §6.3.4), which [`Event::CloseLane`] names.
    /// At error recovery level 2 that lane's tasks wait to be reassigned, at lower levels they are terminated.
    ///
    /// A session that is ending accepts no lane, and a split one none whose role another has: [`Event::CloseLane`] follows at
    /// once.
    pub fn add_lane(&mut self, now: Instant, lane: LaneId, established: &Established) {
        // The window lets the initiator send more commands while its acknowledgements are on their way. Unacknowledged
        // responses on one lane are therefore at most two windows (one each way), and a few pings and Rejects.
        let commands = self.limits.window_commands.saturating_add(self.limits.immediate_commands_max);
        let mut unacknowledged_max = commands.saturating_mul(2).saturating_add(64);
        if self.retransmits() {
            unacknowledged_max = unacknowledged_max.min(self.kept_responses_max());
        }
        let mut state = Lane::new(now, established, unacknowledged_max);
        self.target_name.clone_from(&established.identity.target_name);
        self.reinstate_connection(now, established.cid);
        self.acknowledge_departed(established.cid, established.replaced_exp_stat_sn);
        let is_one_too_many = state.role != LaneRole::Whole && self.lanes.with_role(state.role).is_some();
        if self.standing != Standing::Open || is_one_too_many {
            state.phase = Phase::Failed;
            self.events.push_back(Event::CloseLane { lane, loss: LaneLoss::Broken, fault: None });
        }
        self.lanes.add(lane, state);
        self.ask_late_lane_for_logout(now, lane);
        self.conclude(now);
    }

    /// The most responses that one lane keeps to send again: a lane's share of the tasks that a session can name.
    fn kept_responses_max(&self) -> u32 {
        KEPT_TASKS_MAX / (u32::from(self.parameters.max_connections) + 1)
    }

    /// Ends the session without telling the initiator: every lane is closed. [`Event::Ended`] comes when every task
    /// handed out has been responded to and every lane was reported lost.
    pub fn close(&mut self, now: Instant) {
        self.end(now, false);
        self.conclude(now);
    }

    /// The session's observable numbers.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let window = self.order.window();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Counters {
            exp_cmd_sn: window.exp_cmd_sn,
            max_cmd_sn: window.max_cmd_sn,
            lanes: count(self.lanes.len()),
            tasks: count(self.tasks.len()),
            early_commands: self.order.early(),
            immediate_commands: self.immediate_commands(),
            retained_bytes: self.retained_bytes as u64,
            departed_lanes: count(self.departed.len()),
            ..self.counters
        }
    }

    /// The waits of its commands for their turn.
    #[must_use]
    pub fn order_waits(&self) -> &OrderWaits {
        &self.order_waits
    }

    pub(super) fn is_discovery(&self) -> bool {
        self.parameters.session_type == SessionType::Discovery
    }

    pub(super) fn end(&mut self, now: Instant, orderly: bool) {
        if self.standing != Standing::Open {
            return;
        }
        self.standing = Standing::Ending { orderly };
        if !orderly {
            self.events.push_back(Event::NexusLost);
        }
        self.functions = Functions::default();
        self.fences = Fences::default();
        self.logouts.clear();
        self.logout_deadline = None;
        self.departed = Departures::default();
        self.restless.clear();
        let lanes = self.lanes.ids();
        for id in lanes {
            self.drop_exchange(id);
            self.drop_incoming(id);
            if let Some(lane) = self.lanes.get_mut(id)
                && lane.phase != Phase::Failed
                && lane.phase != Phase::LoggedOut
            {
                lane.phase = Phase::Failed;
                lane.clear_transfers();
                self.events.push_back(Event::CloseLane { lane: id, loss: LaneLoss::Broken, fault: None });
            }
        }
        for waiting in self.order.forget(|_| true) {
            self.drop_request(waiting.request);
        }
        for id in self.tasks.select(|_| true) {
            // A task that was never handed out has nothing to wait for.
            if let Some(task) = self.tasks.get_mut(id).filter(|task| task.stage == Stage::Waiting) {
                task.stage = Stage::Ended(Answer::Settling);
            }
            self.silence(now, id);
        }
    }

    /// Goes on with everything that waited for tasks, data or acknowledgements.
    pub(super) fn conclude(&mut self, now: Instant) {
        if self.functions.active.is_some() || self.fences.stands() {
            self.conclude_functions(now);
        }
        if !self.logouts.is_empty() {
            self.conclude_logouts();
        }
        if self.awaits_rest() {
            self.conclude_rest(now);
        }
        if let Standing::Ending { orderly } = self.standing
            && self.tasks.is_empty()
            && self.lanes.is_empty()
        {
            self.standing = Standing::Ended;
            self.events.push_back(Event::Ended { orderly });
        }
    }

    /// Forgets a PDU whose data segment will not come.
    pub(super) fn drop_incoming(&mut self, lane: LaneId) {
        let incoming = self.lanes.get_mut(lane).and_then(|lane| lane.incoming.take());
        match incoming.map(|incoming| incoming.content) {
            Some(Content::Command(task)) => self.release_buffers(*task),
            Some(Content::DataOut(arriving)) => self.abandon_data_out(&arriving),
            Some(Content::Text(..) | Content::Nop(..) | Content::Discarded) | None => {}
        }
    }

    fn dispatch(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        buffers: &mut dyn Buffers,
    ) -> Result<Destination, Fault> {
        let pdu = match InitiatorPdu::parse(header) {
            Ok(pdu) => pdu,
            Err(invalid) => return self.refuse_fault(lane, header, invalid.into()),
        };
        if !self.carries(lane, &pdu) {
            return self.refuse_fault(lane, header, PeerFault::LaneMisused);
        }
        // A SNACK requests before it acknowledges (§11.16.1): the requested PDUs must still be kept.
        if !matches!(pdu, InitiatorPdu::Snack(_)) {
            self.acknowledge(now, lane, &pdu);
        }
        if self.is_discovery() && !is_for_discovery(&pdu) {
            return self.refuse_fault(lane, header, PeerFault::NotForDiscovery);
        }
        match pdu {
            InitiatorPdu::ScsiCommand(pdu) => self.receive_command(now, lane, header, pdu, buffers),
            InitiatorPdu::DataOut(pdu) => self.receive_data_out(now, lane, header, &pdu),
            InitiatorPdu::NopOut(pdu) => self.receive_nop(now, lane, header, pdu),
            InitiatorPdu::TaskManagementRequest(pdu) => self.receive_task_management(now, lane, header, pdu),
            InitiatorPdu::TextRequest(pdu) => self.receive_text(now, lane, header, pdu),
            InitiatorPdu::LogoutRequest(pdu) => self.receive_logout(now, lane, header, pdu),
            InitiatorPdu::Snack(snack) => {
                let destination = self.receive_snack(now, lane, header, &snack);
                self.acknowledge(now, lane, &pdu);
                destination
            }
            InitiatorPdu::LoginRequest(_) => self.refuse_fault(lane, header, PeerFault::LoginInFullFeature),
        }
    }

    /// Whether a lane brings such PDUs. All bring pings, and answers to them; tasks need all lanes of a split session.
    fn carries(&self, id: LaneId, pdu: &InitiatorPdu) -> bool {
        let Some(lane) = self.lanes.get(id) else { return true };
        match pdu {
            InitiatorPdu::NopOut(_) => true,
            InitiatorPdu::ScsiCommand(_) | InitiatorPdu::TaskManagementRequest(_) => {
                self.lanes.route_over(id, self.parameters.split).is_some()
            }
            _ => lane.role.takes_requests(),
        }
    }

    fn acknowledge(&mut self, now: Instant, came_on: LaneId, pdu: &InitiatorPdu) {
        let Some(exp_stat_sn) = self.lanes.get(came_on).and_then(|lane| exp_stat_sn(pdu, lane)) else {
            return;
        };
        let Some(id) = self.lanes.of_responses(came_on) else { return };
        let Some(lane) = self.lanes.get_mut(id) else { return };
        let news = lane.status.acknowledge(exp_stat_sn);
        if news == 0 || self.parameters.error_recovery_level == 0 {
            return;
        }
        lane.reminder.note_progress(now, lane.status.is_acknowledged(lane.status.next()));
        let acknowledged: Vec<_> = (0..news).map_while(|_| lane.sent.pop()).collect();
        for status in acknowledged {
            // A task that has been given another route is answered again there.
            if let SentStatus::Task(task) = status
                && self.tasks.get(task).is_some_and(|task| task.route.response == id)
            {
                self.finish(task);
            }
        }
    }
}

/// The PDUs that a discovery session knows (§4.3): Text and Logout, and pings, which do no harm.
fn is_for_discovery(pdu: &InitiatorPdu) -> bool {
    matches!(pdu, InitiatorPdu::TextRequest(_) | InitiatorPdu::LogoutRequest(_) | InitiatorPdu::NopOut(_))
}

/// The ExpStatSN that a PDU carries for the lane on which it came.
fn exp_stat_sn(pdu: &InitiatorPdu, lane: &Lane) -> Option<StatSn> {
    let is_of_lane = match pdu {
        // A Logout's ExpStatSN is that of the connection to be closed, which may be another (§11.14.4).
        InitiatorPdu::LogoutRequest(pdu) => pdu.cid == lane.cid,
        InitiatorPdu::LoginRequest(_) => false,
        _ => true,
    };
    is_of_lane.then(|| pdu.exp_stat_sn())
}

impl Endpoint for Session {
    type Event = Event;

    fn receive_header(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        digest: Digest,
        buffers: &mut dyn Buffers,
    ) -> Result<Destination, Fault> {
        let Some(state) = self.lanes.get_mut(lane).filter(|lane| lane.phase == Phase::Open) else {
            return Ok(discard(header));
        };
        if digest == Digest::Bad {
            // Above level 0 the PDU is a hole, which later numbers reveal. Its damaged header cannot say which PDU it
            // was.
            if self.parameters.error_recovery_level > 0 {
                self.counters.header_digest_errors += 1;
                return Ok(discard(header));
            }
            state.phase = Phase::Failed;
            return Err(Fault::HeaderDigest);
        }
        state.liveness.heard(now);
        if header.data_segment_bytes() > state.parameters.receive_segment_bytes_max {
            return self.refuse_fault(lane, header, PeerFault::SegmentTooLong);
        }
        let destination = self.dispatch(now, lane, header, buffers);
        self.conclude(now);
        destination
    }

    fn receive_data(
        &mut self,
        now: Instant,
        lane: LaneId,
        inline: &[u8],
        digest: Digest,
    ) -> Result<(), Fault> {
        let Some(state) = self.lanes.get_mut(lane) else { return Ok(()) };
        state.liveness.heard(now);
        let Some(Incoming { header, content }) = state.incoming.take() else { return Ok(()) };
        let is_awaited = matches!(content, Content::DataOut(_));
        state.inflow.bring(now, header.data_segment_bytes(), is_awaited);
        if digest == Digest::Bad && self.parameters.error_recovery_level > 0 {
            self.reject_data(now, lane, &header, content);
            self.conclude(now);
            return Ok(());
        }
        if digest == Digest::Bad {
            state.incoming = Some(Incoming { header: header.clone(), content });
            self.drop_incoming(lane);
            return Err(self.fail(lane, &header, RejectReason::DataDigestError, Fault::DataDigest));
        }
        let result = match content {
            Content::Command(task) => {
                let bytes = u64::from(header.data_segment_bytes());
                match task.data_out.buffer {
                    Some(_) => self.counters.data_out_bytes += bytes,
                    None => self.counters.discarded_bytes += bytes,
                }
                self.accept_command(now, lane, &header, *task)
            }
            Content::DataOut(arriving) => {
                self.take_data_out(now, &arriving);
                Ok(())
            }
            Content::Text(pdu, ticket) => self.take_text(now, lane, pdu, ticket, inline),
            Content::Nop(pdu, ticket) => self.take_nop(now, lane, pdu, ticket, inline),
            Content::Discarded => {
                self.counters.discarded_bytes += u64::from(header.data_segment_bytes());
                Ok(())
            }
        };
        if result.is_err()
            && let Some(lane) = self.lanes.get_mut(lane)
        {
            lane.phase = Phase::Failed;
        }
        self.conclude(now);
        result
    }

    fn poll_transmit(&mut self, now: Instant, lane: LaneId, budget_bytes: u32) -> Option<Transmit> {
        let pdu = self.next_pdu(now, lane, budget_bytes);
        if let Some(lane) = self.lanes.get_mut(lane).filter(|_| pdu.is_some()) {
            lane.pulled_pdus += 1;
        }
        self.conclude(now);
        pdu
    }

    fn wants_transmit(&self, lane: LaneId) -> bool {
        self.lanes.get(lane).is_some_and(Lane::wants_transmit)
    }

    fn transmitted(&mut self, now: Instant, lane: LaneId, pdus: u32) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.left_pdus += u64::from(pdus);
            lane.liveness.left(now, lane.left_pdus);
        }
    }

    fn heard(&mut self, now: Instant, lane: LaneId) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.liveness.heard(now);
        }
    }

    fn doubts(&self, lane: LaneId) -> bool {
        self.lanes.get(lane).is_some_and(|lane| lane.phase == Phase::Open && lane.liveness.is_looking())
    }

    fn delivered(&mut self, now: Instant, lane: LaneId, bytes: u64) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.liveness.delivered(now, bytes);
        }
    }

    /// Below error recovery level 2, a lane that is lost without a logout ends the session (RFC 7143 §7.1.5). The
    /// session itself knows whether the lane was logged out, and ignores `_loss`.
    fn lane_lost(&mut self, now: Instant, lane: LaneId, _loss: LaneLoss) {
        // An initiator that requested a logout and does not wait for the answer has still left in good order.
        let is_orderly = self.is_leaving(lane);
        self.drop_incoming(lane);
        self.drop_exchange(lane);
        let Some(mut state) = self.lanes.lose(lane) else { return };
        for reply in core::mem::take(&mut state.replies) {
            self.drop_reply(reply);
        }
        let is_over = if self.recovers_connections() && self.standing == Standing::Open {
            if !is_orderly {
                self.break_away(now, lane, state);
            }
            self.lanes.is_empty() && self.departed.is_empty()
        } else {
            !is_orderly || self.lanes.is_empty()
        };
        if is_over || self.awaits_end_of_session(lane) {
            self.end(now, is_orderly);
        }
        self.conclude(now);
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_deadline()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.expire_timers(now);
        self.conclude(now);
    }
}
