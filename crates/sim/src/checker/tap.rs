//! Listens to both ends of every connection: may this be sent now?
//!
//! What is sent is judged by what that side had received: a command by the greatest MaxCmdSN that had reached the
//! initiator, an R2T by the Data-Out that had reached the target. The bytes between are not looked at; that they say
//! what was sent is the business of digests and of the blocks' contents.

use super::Violation;
use super::command_order::CommandOrder;
use super::task_watch::TaskWatch;
use crate::network::{ConnectionId, Side};
use crate::reached::{Reached, Way};
use pdu::{
    CmdSn, DataIn, Header, InitiatorPdu, Instant, Itt, LaneId, LogoutReason, ScsiCommand, Snack, SnackKind,
    StatSn, TargetPdu, TaskManagementFunction, TaskManagementOutcome, TaskManagementRequest, Ttt,
};
use session::parameters::{Established, SessionParameters};
use session::seam::{Buffers, Destination, Digest, Endpoint, Fault, LaneLoss, Transmit};
use std::collections::{HashMap, VecDeque};

/// One session from its leading login to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u32);

#[derive(Debug)]
struct SessionWatch {
    parameters: SessionParameters,
    /// The greatest MaxCmdSN that has reached the initiator.
    max_cmd_sn: CmdSn,
    /// The greatest that the target has sent.
    told_max_cmd_sn: CmdSn,
    /// Which commands have arrived.
    order: CommandOrder,
    tasks: HashMap<Itt, TaskWatch>,
    functions: HashMap<Itt, TaskManagementRequest>,
    /// The tasks of which Data-In asked for an acknowledgement, by its tag.
    acknowledging: HashMap<Ttt, Itt>,
}

#[derive(Debug)]
struct LaneWatch {
    session: SessionKey,
    /// The next status of this lane.
    stat_sn: StatSn,
    /// Whose the last statuses were, and which; the last of them has the number before `stat_sn`.
    statuses: VecDeque<(Itt, u8)>,
    /// The longest data segment that each side takes, by the side that sends it.
    segment_bytes_max: [u32; 2],
}

/// What both sides of all sessions may do.
#[derive(Debug, Default)]
pub struct Tap {
    sessions: HashMap<SessionKey, SessionWatch>,
    lanes: HashMap<ConnectionId, LaneWatch>,
    /// The next status of lanes that are established at their target only.
    early: HashMap<ConnectionId, StatSn>,
    violation: Option<Violation>,
    /// PDUs in full feature phase.
    pub pdus: u64,
    /// What went another way than usual.
    pub reached: Reached,
    /// Lines for a reader, if one wants them.
    pub trace: Option<Vec<String>>,
}

impl Tap {
    /// A connection's login is done, as its initiator sees it.
    pub fn establish(&mut self, key: SessionKey, connection: ConnectionId, established: &Established) {
        let window = established.window;
        self.sessions.entry(key).or_insert_with(|| SessionWatch {
            parameters: established.session,
            max_cmd_sn: window.max_cmd_sn,
            told_max_cmd_sn: window.max_cmd_sn,
            order: CommandOrder::new(window.exp_cmd_sn),
            tasks: HashMap::new(),
            functions: HashMap::new(),
            acknowledging: HashMap::new(),
        });
        self.hear_window(key, window.max_cmd_sn);
        let lane = LaneWatch {
            session: key,
            stat_sn: self.early.remove(&connection).unwrap_or(established.stat_sn),
            statuses: VecDeque::new(),
            segment_bytes_max: [
                established.connection.send_segment_bytes_max,
                established.connection.receive_segment_bytes_max,
            ],
        };
        self.lanes.insert(connection, lane);
    }

    /// A session is over at its initiator: nobody hears it any more.
    pub fn end(&mut self, key: SessionKey) {
        self.sessions.remove(&key);
        self.lanes.retain(|_, lane| lane.session != key);
    }

    /// What was found wrong first.
    pub fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    fn hear_window(&mut self, key: SessionKey, max_cmd_sn: CmdSn) {
        if let Some(session) = self.sessions.get_mut(&key)
            && session.max_cmd_sn.precedes(max_cmd_sn)
        {
            session.max_cmd_sn = max_cmd_sn;
        }
    }

    /// One side sends this.
    pub fn sent(&mut self, now: Instant, connection: ConnectionId, side: Side, header: &Header) {
        self.pdus += 1;
        let problem = match side {
            Side::Initiator => self.initiator_sends(connection, header),
            Side::Target => self.target_sends(connection, header),
        };
        self.note(now, connection, side, "sends", header);
        if let Err(problem) = problem {
            let who = if side == Side::Initiator { "initiator" } else { "target" };
            self.violation.get_or_insert(Violation(format!("{who}, connection {}: {problem}", connection.0)));
        }
    }

    fn note(&mut self, now: Instant, connection: ConnectionId, side: Side, verb: &str, header: &Header) {
        let Some(trace) = &mut self.trace else { return };
        let what = match side {
            Side::Initiator => InitiatorPdu::parse(header).map(|pdu| format!("{pdu:?}")),
            Side::Target => TargetPdu::parse(header).map(|pdu| format!("{pdu:?}")),
        };
        let what = what.unwrap_or_else(|error| format!("{error}"));
        trace.push(format!("{:>14} connection {} {side:?} {verb} {what}", now.0, connection.0));
    }

    fn initiator_sends(&mut self, connection: ConnectionId, header: &Header) -> Result<(), String> {
        let Some(lane) = self.lanes.get(&connection) else { return Ok(()) };
        let segment_bytes = header.data_segment_bytes();
        if segment_bytes > lane.segment_bytes_max[Side::Initiator as usize] {
            return Err(format!("a data segment of {segment_bytes} bytes"));
        }
        let Some(session) = self.sessions.get_mut(&lane.session) else { return Ok(()) };
        match InitiatorPdu::parse(header).map_err(|error| error.to_string())? {
            InitiatorPdu::ScsiCommand(pdu) => {
                if !pdu.immediate && session.max_cmd_sn.precedes(pdu.cmd_sn) {
                    return Err(format!("CmdSN {} beyond MaxCmdSN {}", pdu.cmd_sn.0, session.max_cmd_sn.0));
                }
                session.begin_task(&pdu, &mut self.reached)
            }
            InitiatorPdu::DataOut(pdu) => match session.tasks.get_mut(&pdu.itt) {
                Some(task) => task.send_data_out(&pdu, &session.parameters),
                None => Err(format!("Data-Out of no task {:#x}", pdu.itt.0)),
            },
            InitiatorPdu::TaskManagementRequest(pdu) => {
                session.functions.insert(pdu.itt, pdu);
                Ok(())
            }
            InitiatorPdu::Snack(Snack { kind, .. }) => {
                self.reached.count(match kind {
                    SnackKind::DataOrR2t { .. } | SnackKind::ResegmentedData { .. } => Way::DataSnack,
                    SnackKind::Status { .. } => Way::StatusSnack,
                    SnackKind::DataAck { .. } => Way::DataAcknowledged,
                });
                Ok(())
            }
            InitiatorPdu::LogoutRequest(pdu) => {
                if pdu.reason == LogoutReason::RemoveConnectionForRecovery {
                    self.reached.count(Way::LogoutForRecovery);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn target_sends(&mut self, connection: ConnectionId, header: &Header) -> Result<(), String> {
        let Some(lane) = self.lanes.get_mut(&connection) else {
            let stat_sn = TargetPdu::parse(header).ok().and_then(|pdu| status_number(&pdu));
            self.early.extend(stat_sn.map(|stat_sn| (connection, stat_sn.next())));
            return Ok(());
        };
        let segment_bytes = header.data_segment_bytes();
        if segment_bytes > lane.segment_bytes_max[Side::Target as usize] {
            return Err(format!("a data segment of {segment_bytes} bytes"));
        }
        let Some(session) = self.sessions.get_mut(&lane.session) else { return Ok(()) };
        let pdu = TargetPdu::parse(header).map_err(|error| error.to_string())?;
        if let Some(window) = window_of(&pdu) {
            if window.max_cmd_sn.precedes(session.told_max_cmd_sn) {
                return Err(format!("MaxCmdSN {} after {}", window.max_cmd_sn.0, session.told_max_cmd_sn.0));
            }
            session.told_max_cmd_sn = window.max_cmd_sn;
            session.order.expects(window.exp_cmd_sn)?;
        }
        if let Some(stat_sn) = status_number(&pdu)
            && lane.send_status(stat_sn, status_of(&pdu), session.parameters.error_recovery_level)?
        {
            self.reached.count(Way::StatusAgain);
        }
        let reached = &mut self.reached;
        match pdu {
            TargetPdu::DataIn(pdu) => {
                if pdu.acknowledge {
                    session.acknowledging.insert(pdu.ttt, pdu.itt);
                }
                match session.tasks.get_mut(&pdu.itt) {
                    Some(task) => task.send_data_in(connection, &pdu, &session.parameters, reached),
                    None => Ok(()),
                }
            }
            TargetPdu::R2t(pdu) => match session.tasks.get_mut(&pdu.itt) {
                Some(task) => task.send_r2t(&pdu, &session.parameters, reached),
                None => Ok(()),
            },
            TargetPdu::ScsiResponse(pdu) => match session.tasks.get_mut(&pdu.itt) {
                Some(task) => task.send_response(connection, &pdu, &session.parameters),
                None => Err(format!("a response to no task {:#x}", pdu.itt.0)),
            },
            TargetPdu::TaskManagementResponse(pdu)
                if pdu.outcome == TaskManagementOutcome::FunctionComplete =>
            {
                session.reassign(connection, pdu.itt, reached);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn received(&mut self, now: Instant, connection: ConnectionId, side: Side, header: &Header) {
        if self.trace.is_some() {
            self.note(now, connection, side.peer(), "is heard:", header);
        }
        let Some(lane) = self.lanes.get(&connection) else { return };
        let key = lane.session;
        let Some(session) = self.sessions.get_mut(&key) else { return };
        match side {
            Side::Target => {
                if let Ok(pdu) = InitiatorPdu::parse(header) {
                    session.target_hears(connection, &pdu);
                }
            }
            Side::Initiator => {
                let Ok(pdu) = TargetPdu::parse(header) else { return };
                match &pdu {
                    TargetPdu::ScsiResponse(pdu) => session.end_task(pdu.itt),
                    TargetPdu::DataIn(DataIn { itt, status: Some(_), .. }) => session.end_task(*itt),
                    TargetPdu::TaskManagementResponse(pdu) => session.end_function(pdu.itt, pdu.outcome),
                    _ => {}
                }
                if let Some(window) = window_of(&pdu) {
                    self.hear_window(key, window.max_cmd_sn);
                }
            }
        }
    }
}

impl LaneWatch {
    /// A status leaves. Whether it left before.
    fn send_status(&mut self, stat_sn: StatSn, what: (Itt, u8), level: u8) -> Result<bool, String> {
        /// Statuses that a lane remembers; what is older was acknowledged long ago.
        const STATUSES_MAX: usize = 1 << 12;
        if stat_sn == self.stat_sn {
            self.stat_sn = stat_sn.next();
            if level > 0 {
                self.statuses.push_back(what);
                if self.statuses.len() > STATUSES_MAX {
                    self.statuses.pop_front();
                }
            }
            return Ok(false);
        }
        if level == 0 || !stat_sn.precedes(self.stat_sn) {
            return Err(format!("StatSN {} where {} is due", stat_sn.0, self.stat_sn.0));
        }
        let age = usize::try_from(self.stat_sn.distance_from(stat_sn)).unwrap_or(usize::MAX);
        let before = self.statuses.len().checked_sub(age).and_then(|place| self.statuses.get(place));
        match before {
            Some(before) if *before != what => {
                Err(format!("StatSN {} is {what:x?} and was {before:x?}", stat_sn.0))
            }
            _ => Ok(true),
        }
    }
}

impl SessionWatch {
    /// The initiator sends a command.
    fn begin_task(&mut self, pdu: &ScsiCommand, reached: &mut Reached) -> Result<(), String> {
        if let Some(before) = self.tasks.get_mut(&pdu.itt)
            && !before.is_over()
        {
            if !before.is_same_again(pdu, &self.parameters) {
                return Err(format!("ITT {:#x} used again", pdu.itt.0));
            }
            reached.count(Way::CommandAgain);
            return Ok(());
        }
        let watch = TaskWatch::begin(pdu, &self.parameters)?;
        self.tasks.insert(pdu.itt, watch);
        Ok(())
    }

    /// The target has received this.
    fn target_hears(&mut self, connection: ConnectionId, pdu: &InitiatorPdu) {
        match pdu {
            InitiatorPdu::DataOut(pdu) => {
                let task = self.tasks.get_mut(&pdu.itt);
                task.into_iter().for_each(|task| task.receive_data_out(pdu));
            }
            InitiatorPdu::Snack(Snack { kind: SnackKind::DataAck { ttt, next }, .. }) => {
                let task = self.acknowledging.get(ttt).and_then(|itt| self.tasks.get_mut(itt));
                task.into_iter().for_each(|task| task.acknowledge(*next));
            }
            InitiatorPdu::TaskManagementRequest(pdu) if pdu.function == TaskManagementFunction::AbortTask => {
                // A command that is aborted before it arrives counts as arrived (RFC 7143 §11.6.1).
                self.order.arrive(pdu.ref_cmd_sn);
                let task = self.tasks.get_mut(&pdu.referenced_task);
                task.into_iter().for_each(|task| task.abort(connection));
            }
            _ => {}
        }
        if let Some(cmd_sn) = place_in_order(pdu) {
            self.order.arrive(cmd_sn);
        }
    }

    /// The target tells that a function is done: if that was a reassignment, the task goes on.
    fn reassign(&mut self, connection: ConnectionId, function: Itt, reached: &mut Reached) {
        let Some(function) = self.functions.get(&function) else { return };
        if function.function != TaskManagementFunction::TaskReassign {
            return;
        }
        reached.count(Way::TaskReassigned);
        if let Some(task) = self.tasks.get_mut(&function.referenced_task) {
            task.reassign(connection, function.exp_data_sn);
        }
    }

    fn end_task(&mut self, itt: Itt) {
        if let Some(task) = self.tasks.get_mut(&itt) {
            task.end();
        }
    }

    fn end_function(&mut self, itt: Itt, outcome: TaskManagementOutcome) {
        let Some(function) = self.functions.remove(&itt) else { return };
        match (function.function, outcome) {
            (
                TaskManagementFunction::AbortTask,
                TaskManagementOutcome::TaskDoesNotExist | TaskManagementOutcome::FunctionComplete,
            ) => {
                self.end_task(function.referenced_task);
            }
            (TaskManagementFunction::TaskReassign, _) => {}
            (_, TaskManagementOutcome::FunctionComplete) => self.tasks.values_mut().for_each(TaskWatch::end),
            _ => {}
        }
    }
}

/// The window that a PDU tells. A Login Response is no part of what is watched here.
fn window_of(pdu: &TargetPdu) -> Option<pdu::Window> {
    (!matches!(pdu, TargetPdu::LoginResponse(_))).then(|| pdu.window())
}

/// The CmdSN of PDUs that have a place of their own in the order of commands.
fn place_in_order(pdu: &InitiatorPdu) -> Option<CmdSn> {
    let (immediate, cmd_sn) = match pdu {
        InitiatorPdu::NopOut(pdu) => (pdu.immediate, pdu.cmd_sn),
        InitiatorPdu::ScsiCommand(pdu) => (pdu.immediate, pdu.cmd_sn),
        InitiatorPdu::TaskManagementRequest(pdu) => (pdu.immediate, pdu.cmd_sn),
        InitiatorPdu::TextRequest(pdu) => (pdu.immediate, pdu.cmd_sn),
        InitiatorPdu::LogoutRequest(pdu) => (pdu.immediate, pdu.cmd_sn),
        InitiatorPdu::LoginRequest(_) | InitiatorPdu::DataOut(_) | InitiatorPdu::Snack(_) => return None,
    };
    (!immediate).then_some(cmd_sn)
}

/// Whose status a PDU brings, and which.
fn status_of(pdu: &TargetPdu) -> (Itt, u8) {
    match pdu {
        TargetPdu::DataIn(pdu) => (pdu.itt, pdu.status.map_or(0, |status| status.status)),
        TargetPdu::ScsiResponse(pdu) => (pdu.itt, pdu.status),
        TargetPdu::TaskManagementResponse(pdu) => (pdu.itt, 0),
        TargetPdu::TextResponse(pdu) => (pdu.itt, 0),
        TargetPdu::LogoutResponse(pdu) => (pdu.itt, 0),
        TargetPdu::NopIn(pdu) => (pdu.itt, 0),
        _ => (Itt::NONE, 0),
    }
}

/// The StatSN of PDUs that use one up (RFC 7143 §4.2.2.2).
fn status_number(pdu: &TargetPdu) -> Option<StatSn> {
    match pdu {
        TargetPdu::DataIn(pdu) => pdu.status.map(|status| status.stat_sn),
        TargetPdu::ScsiResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::TaskManagementResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::TextResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::LogoutResponse(pdu) => Some(pdu.stat_sn),
        TargetPdu::AsyncMessage(pdu) => Some(pdu.stat_sn),
        TargetPdu::Reject(pdu) => Some(pdu.stat_sn),
        TargetPdu::NopIn(pdu) if pdu.itt != Itt::NONE => Some(pdu.stat_sn),
        TargetPdu::NopIn(_) | TargetPdu::R2t(_) | TargetPdu::LoginResponse(_) => None,
    }
}

/// A session with somebody listening to what it receives.
#[derive(Debug)]
pub struct Tapped<'a, E> {
    endpoint: &'a mut E,
    tap: &'a mut Tap,
    connection: ConnectionId,
    side: Side,
}

impl<'a, E> Tapped<'a, E> {
    /// Listens to what `endpoint` receives over `connection` at `side`.
    pub fn new(endpoint: &'a mut E, tap: &'a mut Tap, connection: ConnectionId, side: Side) -> Self {
        Self { endpoint, tap, connection, side }
    }
}

impl<E: Endpoint> Endpoint for Tapped<'_, E> {
    type Event = E::Event;

    fn receive_header(
        &mut self,
        now: Instant,
        lane: LaneId,
        header: &Header,
        digest: Digest,
        buffers: &mut dyn Buffers,
    ) -> Result<Destination, Fault> {
        if digest == Digest::Good {
            self.tap.received(now, self.connection, self.side, header);
        }
        self.endpoint.receive_header(now, lane, header, digest, buffers)
    }

    fn receive_data(
        &mut self,
        now: Instant,
        lane: LaneId,
        inline: &[u8],
        digest: Digest,
    ) -> Result<(), Fault> {
        self.endpoint.receive_data(now, lane, inline, digest)
    }

    fn poll_transmit(&mut self, now: Instant, lane: LaneId, budget_bytes: u32) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, lane, budget_bytes)
    }

    fn wants_transmit(&self, lane: LaneId) -> bool {
        self.endpoint.wants_transmit(lane)
    }

    fn transmitted(&mut self, now: Instant, lane: LaneId, pdus: u32) {
        self.endpoint.transmitted(now, lane, pdus);
    }

    fn heard(&mut self, now: Instant, lane: LaneId) {
        self.endpoint.heard(now, lane);
    }

    fn doubts(&self, lane: LaneId) -> bool {
        self.endpoint.doubts(lane)
    }

    fn delivered(&mut self, now: Instant, lane: LaneId, bytes: u64) {
        self.endpoint.delivered(now, lane, bytes);
    }

    fn lane_lost(&mut self, now: Instant, lane: LaneId, loss: LaneLoss) {
        self.endpoint.lane_lost(now, lane, loss);
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.endpoint.poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }
}
