//! One session, on all its connections: what its initiator may send, what its target may answer, and in which order.

use super::command_order::CommandOrder;
use super::lane_watch::LaneWatch;
use super::number_map::NumberMap;
use super::tap::TargetSession;
use super::task_watch::TaskWatch;
use crate::network::ConnectionId;
use crate::portal::PortalId;
use crate::reached::{Reached, Way};
use pdu::{
    AsyncEvent, CmdSn, DataIn, Duration, InitiatorPdu, Instant, Itt, LogoutReason, Lun, ScsiCommand,
    ScsiResponse, Snack, SnackKind, StatSn, TargetPdu, TaskManagementFunction, TaskManagementOutcome,
    TaskManagementRequest, TaskManagementResponse, Ttt, Window,
};
use scsi::MediumAccess;
use session::parameters::{Established, SessionParameters, SplitLanes};
use std::collections::HashSet;

const GOOD: u8 = 0x00;
const TASK_SET_FULL: u8 = 0x28;
const CHECK_CONDITION: u8 = 0x02;

/// INQUIRY for the page that says who a unit is.
const DEVICE_IDENTIFICATION: [u8; 3] = [0x12, 0x01, 0x83];

/// A connection that has fallen silent is noticed before that, and what it owes is brought by another.
const LOST_ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// A task's tag that is so much smaller than that of the task before it has wrapped.
const WRAP: u32 = 1 << 30;

/// READ (16), which the client uses where there are long addresses.
const READ: [u8; 1] = [0x88];

/// The connections of all sessions.
pub(super) type Lanes = NumberMap<ConnectionId, LaneWatch>;

#[derive(Debug)]
pub(super) struct SessionWatch {
    /// What its target calls it.
    pub known_as: TargetSession,
    pub parameters: SessionParameters,
    /// The length of the blocks of each unit.
    block_bytes: NumberMap<Lun, u32>,
    /// The portal of its leading connection, and the tag of that one's group.
    pub portal: PortalId,
    pub portal_group: u16,
    /// Its end was asked for, by its initiator or by its target.
    pub is_leaving: bool,
    /// Commands between ExpCmdSN and MaxCmdSN at first: memory was set aside for so many.
    window_commands: u32,
    /// The greatest MaxCmdSN that has reached the initiator.
    max_cmd_sn: CmdSn,
    /// The greatest that the target has sent.
    told_max_cmd_sn: CmdSn,
    /// The greatest CmdSN that the initiator has used, and one.
    next_cmd_sn: CmdSn,
    /// The INQUIRYs under way that ask units who they are.
    identifications: NumberMap<Itt, Lun>,
    /// The units that have answered one over this session.
    identified: HashSet<Lun>,
    /// Which commands have arrived, and which have reached the device server.
    order: CommandOrder,
    tasks: NumberMap<Itt, TaskWatch>,
    /// The tag of the last new task.
    last_tag: Itt,
    functions: NumberMap<Itt, TaskManagementRequest>,
    /// The tasks of which Data-In asked for an acknowledgement, by its tag.
    acknowledging: NumberMap<Ttt, Itt>,
    /// Answers to functions over many tasks that are not known to be acknowledged.
    fences: Vec<Fence>,
}

/// The answer to a function over many tasks.
#[derive(Clone, Copy, Debug)]
struct Fence {
    units: Units,
    /// Where it was sent.
    connection: ConnectionId,
    stat_sn: StatSn,
}

/// The units of which a function over many tasks speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Units {
    One(Lun),
    All,
}

impl Units {
    fn of(function: &TaskManagementRequest) -> Self {
        match function.function {
            TaskManagementFunction::TargetWarmReset | TaskManagementFunction::TargetColdReset => Self::All,
            _ => Self::One(function.lun),
        }
    }

    fn contain(self, lun: Lun) -> bool {
        self == Self::All || self == Self::One(lun)
    }
}

impl SessionWatch {
    /// A session that has begun, with a target whose units' blocks have these lengths.
    pub fn new(
        known_as: TargetSession,
        established: &Established,
        portal: PortalId,
        block_bytes: NumberMap<Lun, u32>,
    ) -> Self {
        let Window { exp_cmd_sn, max_cmd_sn } = established.window;
        Self {
            known_as,
            parameters: established.session,
            block_bytes,
            portal,
            portal_group: established.identity.portal_group_tag,
            is_leaving: false,
            window_commands: max_cmd_sn.next().distance_from(exp_cmd_sn),
            max_cmd_sn,
            told_max_cmd_sn: max_cmd_sn,
            next_cmd_sn: exp_cmd_sn,
            identifications: NumberMap::default(),
            identified: HashSet::new(),
            order: CommandOrder::new(exp_cmd_sn),
            tasks: NumberMap::default(),
            last_tag: Itt(0),
            functions: NumberMap::default(),
            acknowledging: NumberMap::default(),
            fences: Vec::new(),
        }
    }

    /// The CmdSN that the initiator uses next, or one before that.
    pub fn next_cmd_sn(&self) -> CmdSn {
        self.next_cmd_sn
    }

    /// Whether the initiator cannot be as far as that.
    pub fn is_beyond_window(&self, cmd_sn: CmdSn) -> bool {
        self.max_cmd_sn.next().precedes(cmd_sn)
    }

    /// The initiator sends this.
    pub fn initiator_sends(&mut self, pdu: InitiatorPdu, reached: &mut Reached) -> Result<(), String> {
        if let Some(cmd_sn) = pdu.place_in_order().filter(|cmd_sn| !cmd_sn.precedes(self.next_cmd_sn)) {
            let before = std::mem::replace(&mut self.next_cmd_sn, cmd_sn.next());
            if self.next_cmd_sn.0 < before.0 {
                reached.count(Way::CommandNumbersWrapped);
            }
        }
        match pdu {
            InitiatorPdu::ScsiCommand(pdu) => {
                let is_split = self.parameters.split != SplitLanes::None;
                reached.count_many(Way::CommandOfSplitSession, is_split.into());
                if !pdu.immediate && self.max_cmd_sn.precedes(pdu.cmd_sn) {
                    return Err(format!("CmdSN {} beyond MaxCmdSN {}", pdu.cmd_sn.0, self.max_cmd_sn.0));
                }
                return self.begin_task(&pdu, reached);
            }
            InitiatorPdu::DataOut(pdu) => {
                let task = self.tasks.get_mut(&pdu.itt);
                let task = task.ok_or_else(|| format!("Data-Out of no task {:#x}", pdu.itt.0))?;
                return task.send_data_out(&pdu, &self.parameters);
            }
            InitiatorPdu::TaskManagementRequest(pdu) => {
                if pdu.function == TaskManagementFunction::TaskReassign {
                    let task = self.tasks.get_mut(&pdu.referenced_task);
                    task.into_iter().for_each(TaskWatch::move_on);
                }
                let what = |function: &TaskManagementRequest| {
                    (function.function, function.referenced_task, function.lun)
                };
                let before = self.functions.insert(pdu.itt, pdu);
                if before.is_some_and(|before| what(&before) != what(&pdu)) {
                    return Err(format!("ITT {:#x} used again", pdu.itt.0));
                }
            }
            InitiatorPdu::Snack(Snack { kind, .. }) => {
                reached.count(match kind {
                    SnackKind::DataOrR2t { .. } | SnackKind::ResegmentedData { .. } => Way::DataSnack,
                    SnackKind::Status { .. } => Way::StatusSnack,
                    SnackKind::DataAck { .. } => Way::DataAcknowledged,
                });
                if let SnackKind::DataOrR2t { itt, begin, count } = kind
                    && let Some(task) = self.tasks.get(&itt)
                {
                    return task.check_request(begin, count);
                }
            }
            InitiatorPdu::LogoutRequest(pdu) if pdu.reason == LogoutReason::CloseSession => {
                self.is_leaving = true;
            }
            InitiatorPdu::LogoutRequest(pdu) if pdu.reason == LogoutReason::RemoveConnectionForRecovery => {
                reached.count(Way::LogoutForRecovery);
            }
            _ => {}
        }
        Ok(())
    }

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
        self.check_identified(pdu)?;
        let watch = TaskWatch::begin(pdu, &self.parameters, self.block_bytes.get(&pdu.lun).copied())?;
        if std::mem::replace(&mut self.last_tag, pdu.itt).0.saturating_sub(pdu.itt.0) > WRAP {
            reached.count(Way::TaskTagsWrapped);
        }
        self.tasks.insert(pdu.itt, watch);
        Ok(())
    }

    /// A command is aborted where the target does not answer it. An answer that was lost is asked for before that, or
    /// brought by a reassignment, or missed together with its session.
    ///
    /// # Errors
    /// This aborts a command that the target has answered long ago, or has not begun.
    pub fn check_abort(&self, now: Instant, pdu: &InitiatorPdu, reached: &mut Reached) -> Result<(), String> {
        let InitiatorPdu::TaskManagementRequest(pdu) = pdu else { return Ok(()) };
        let task = self.tasks.get(&pdu.referenced_task).filter(|task| !task.is_over());
        let Some(task) = task.filter(|_| pdu.function == TaskManagementFunction::AbortTask) else {
            return Ok(());
        };
        reached.count(Way::TaskAborted);
        // A function over many tasks may have ended it before it began, and have yet to be answered.
        let is_single = |function: &TaskManagementRequest| {
            use TaskManagementFunction::{AbortTask, TaskReassign};
            matches!(function.function, AbortTask | TaskReassign)
        };
        let may_have_ended = !self.functions.values().all(is_single);
        if !may_have_ended && task.arrived_as().is_some_and(|cmd_sn| self.order.owes(cmd_sn)) {
            return Err("a task is aborted whose command has arrived and never began".into());
        }
        match task.answered_for(now).filter(|time| *time > LOST_ANSWER_TIME_MAX) {
            Some(time) => Err(format!("a task is aborted that was answered {time:?} ago")),
            None => Ok(()),
        }
    }

    /// Data is acknowledged before the response to its command, not after: the target then knows the task no more.
    ///
    /// # Errors
    /// The PDUs that the initiator has sent before this one acknowledge the response, on `responses`.
    pub fn check_data_ack(
        &self,
        responses: ConnectionId,
        lane: &LaneWatch,
        pdu: &InitiatorPdu,
    ) -> Result<(), String> {
        let InitiatorPdu::Snack(Snack { kind: SnackKind::DataAck { ttt, .. }, .. }) = pdu else {
            return Ok(());
        };
        let task = self.acknowledging.get(ttt).and_then(|itt| self.tasks.get(itt));
        match task.and_then(TaskWatch::status_place) {
            Some((connection, stat_sn)) if connection == responses && lane.has_told(stat_sn) => {
                Err(format!("a DataACK after the acknowledgement of the response, StatSN {}", stat_sn.0))
            }
            _ => Ok(()),
        }
    }

    /// Who the unit is must be asked over every session: there may be another behind its number.
    fn check_identified(&mut self, pdu: &ScsiCommand) -> Result<(), String> {
        if pdu.cdb.bytes().starts_with(&DEVICE_IDENTIFICATION) {
            self.identifications.insert(pdu.itt, pdu.lun);
        } else {
            self.identifications.remove(&pdu.itt);
        }
        let cdb = pdu.cdb.bytes();
        let moves_data = cdb.starts_with(&READ) || MediumAccess::of(cdb) == MediumAccess::Write;
        if moves_data && !self.identified.contains(&pdu.lun) {
            return Err("data of a unit that was not identified over this session".into());
        }
        Ok(())
    }

    /// The target has received this. Its answer comes on the connection of the responses.
    pub fn target_hears(&mut self, connection: ConnectionId, responses: ConnectionId, pdu: &InitiatorPdu) {
        match pdu {
            InitiatorPdu::ScsiCommand(pdu) => {
                let task = self.tasks.get_mut(&pdu.itt);
                task.into_iter().for_each(|task| task.come_over(connection));
            }
            InitiatorPdu::DataOut(pdu) => {
                let task = self.tasks.get_mut(&pdu.itt);
                task.into_iter().for_each(|task| task.receive_data_out(pdu));
            }
            InitiatorPdu::Snack(Snack { kind: SnackKind::DataOrR2t { itt, begin, count }, .. }) => {
                let task = self.tasks.get_mut(itt);
                task.into_iter().for_each(|task| task.ask_again(*begin, *count));
            }
            InitiatorPdu::Snack(Snack { kind: SnackKind::DataAck { ttt, next }, .. }) => {
                let task = self.acknowledging.get(ttt).and_then(|itt| self.tasks.get_mut(itt));
                task.into_iter().for_each(|task| task.acknowledge(*next));
            }
            InitiatorPdu::TaskManagementRequest(pdu) if pdu.function == TaskManagementFunction::AbortTask => {
                // A command that is aborted before it arrives counts as arrived (RFC 7143 §11.6.1).
                self.order.arrive(pdu.ref_cmd_sn);
                let task = self.tasks.get_mut(&pdu.referenced_task);
                task.into_iter().for_each(|task| task.abort(responses));
            }
            InitiatorPdu::TaskManagementRequest(pdu) if Units::of(pdu) == Units::All => {
                self.order.plug_before(pdu.cmd_sn);
            }
            _ => {}
        }
        if let Some(cmd_sn) = pdu.place_in_order() {
            self.order.arrive(cmd_sn);
        }
    }

    /// A command reaches the device server.
    pub fn hand_out(&mut self, cmd_sn: CmdSn) -> Result<(), String> {
        self.order.hand_out(cmd_sn)
    }

    /// The target tells its window.
    pub fn target_tells(&mut self, window: Window) -> Result<(), String> {
        let Window { exp_cmd_sn, max_cmd_sn } = window;
        if max_cmd_sn.precedes(self.told_max_cmd_sn) {
            return Err(format!("MaxCmdSN {} after {}", max_cmd_sn.0, self.told_max_cmd_sn.0));
        }
        self.told_max_cmd_sn = max_cmd_sn;
        let commands = max_cmd_sn.next().distance_from(exp_cmd_sn);
        if commands > self.window_commands {
            return Err(format!("a window of {commands} commands, {} at first", self.window_commands));
        }
        self.order.expects(exp_cmd_sn)
    }

    /// The target sends this, its status for the first time.
    pub fn target_answers(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        stat_sn: StatSn,
        pdu: &TargetPdu,
        lanes: &Lanes,
    ) -> Result<(), String> {
        match pdu {
            TargetPdu::ScsiResponse(ScsiResponse { itt, .. }) | TargetPdu::DataIn(DataIn { itt, .. }) => {
                let Some(task) = self.tasks.get_mut(itt) else { return Ok(()) };
                task.answer(now);
                let lun = task.lun();
                self.check_fences(connection, lun, lanes)
            }
            TargetPdu::TaskManagementResponse(pdu) => self.answer_function(connection, stat_sn, pdu, lanes),
            _ => Ok(()),
        }
    }

    /// What follows the answer to a function over many tasks of a unit waits until that has arrived (RFC 7143
    /// §4.2.2.3.3), unless it travels behind it.
    fn check_fences(&mut self, connection: ConnectionId, lun: Lun, lanes: &Lanes) -> Result<(), String> {
        let stands = |fence: &Fence| {
            let lane = lanes.get(&fence.connection);
            lane.is_some_and(|lane| !lane.is_gone() && !lane.is_acknowledged(fence.stat_sn))
        };
        self.fences.retain(stands);
        let is_overtaken = |fence: &&Fence| fence.units.contain(lun) && fence.connection != connection;
        match self.fences.iter().find(is_overtaken) {
            Some(fence) => Err(format!(
                "a response although the function's before it, on connection {}, is not acknowledged",
                fence.connection.0
            )),
            None => Ok(()),
        }
    }

    /// The target tells for the first time how a function ended.
    fn answer_function(
        &mut self,
        connection: ConnectionId,
        stat_sn: StatSn,
        pdu: &TaskManagementResponse,
        lanes: &Lanes,
    ) -> Result<(), String> {
        let Some(function) = self.functions.get(&pdu.itt) else { return Ok(()) };
        match function.function {
            // The target dropped the task when Time2Retain expired for its connection.
            TaskManagementFunction::TaskReassign => {
                if pdu.outcome == TaskManagementOutcome::TaskDoesNotExist
                    && let Some(task) = self.tasks.get_mut(&function.referenced_task)
                {
                    task.note_forgotten();
                }
            }
            TaskManagementFunction::AbortTask => {
                if has_aborted(pdu.outcome)
                    && let Some(task) = self.tasks.get_mut(&function.referenced_task)
                {
                    task.note_aborted();
                }
            }
            _ if pdu.outcome == TaskManagementOutcome::FunctionComplete => {
                let (units, cmd_sn) = (Units::of(function), function.cmd_sn);
                let before = self.tasks.values_mut().filter(|task| concerns(units, cmd_sn, task));
                before.for_each(TaskWatch::note_aborted);
                self.check_overtaken(connection, (units, cmd_sn), lanes)?;
                // In a session of one connection nothing can be overtaken.
                if is_one_of_several(connection, lanes) {
                    self.fences.push(Fence { units, connection, stat_sn });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The answer to a function over many tasks of some units, which comes at some CmdSN, waits until theirs before it
    /// have arrived (RFC 7143 §4.2.2.3.3), unless it travels behind them. Those of a connection that is gone need not be
    /// acknowledged.
    fn check_overtaken(
        &self,
        connection: ConnectionId,
        (units, cmd_sn): (Units, CmdSn),
        lanes: &Lanes,
    ) -> Result<(), String> {
        let has_arrived = |task: &TaskWatch, lane: &LaneWatch, stat_sn| {
            lane.is_acknowledged(stat_sn) || lane.is_gone() && (task.is_over() || task.is_forgotten())
        };
        let overtaken = |task: &TaskWatch| {
            let (other, stat_sn) = task.status_place()?;
            let lane = lanes.get(&other)?;
            (concerns(units, cmd_sn, task) && other != connection && !has_arrived(task, lane, stat_sn))
                .then_some((other.0, stat_sn.0))
        };
        match self.tasks.values().filter_map(overtaken).min() {
            Some((other, stat_sn)) => Err(format!(
                "a function over many tasks is answered before StatSN {stat_sn} of connection {other} has arrived"
            )),
            None => Ok(()),
        }
    }

    /// The target sends this on a connection.
    pub fn target_sends(
        &mut self,
        connection: ConnectionId,
        pdu: &TargetPdu,
        reached: &mut Reached,
    ) -> Result<(), String> {
        if matches!(pdu, TargetPdu::ScsiResponse(pdu) if pdu.status == CHECK_CONDITION) {
            reached.count(Way::CheckCondition);
        }
        match pdu {
            TargetPdu::AsyncMessage(pdu) => {
                match pdu.event {
                    AsyncEvent::LogoutRequest { .. } => reached.count(Way::LogoutAsked),
                    AsyncEvent::ConnectionDrop { .. } => reached.count(Way::ConnectionDropTold),
                    AsyncEvent::SessionDrop { .. } => reached.count(Way::SessionDropTold),
                    _ => {}
                }
                Ok(())
            }
            TargetPdu::DataIn(pdu) => {
                if pdu.acknowledge {
                    self.acknowledging.insert(pdu.ttt, pdu.itt);
                }
                match self.tasks.get_mut(&pdu.itt) {
                    Some(task) => task.send_data_in(connection, pdu, &self.parameters, reached),
                    None => Ok(()),
                }
            }
            TargetPdu::R2t(pdu) => match self.tasks.get_mut(&pdu.itt) {
                Some(task) => task.send_r2t(pdu, &self.parameters, reached),
                None => Ok(()),
            },
            // The command window is a promise of memory, and the units' task sets are larger than all windows.
            TargetPdu::ScsiResponse(pdu) if pdu.status == TASK_SET_FULL => {
                Err(format!("TASK SET FULL for task {:#x}", pdu.itt.0))
            }
            TargetPdu::ScsiResponse(pdu) => match self.tasks.get_mut(&pdu.itt) {
                Some(task) => task.send_response(connection, pdu, &self.parameters, reached),
                None => Err(format!("a response to no task {:#x}", pdu.itt.0)),
            },
            TargetPdu::TaskManagementResponse(pdu)
                if pdu.outcome == TaskManagementOutcome::FunctionComplete =>
            {
                self.reassign(connection, pdu.itt, reached);
                Ok(())
            }
            _ => Ok(()),
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

    /// The initiator has received this, whole or with damaged data.
    pub fn initiator_hears(&mut self, pdu: &TargetPdu, is_whole: bool, reached: &mut Reached) {
        match pdu {
            TargetPdu::DataIn(pdu) => self.hear_number(pdu.itt, pdu.data_sn.0, is_whole),
            TargetPdu::R2t(pdu) => self.hear_number(pdu.itt, pdu.r2t_sn.0, is_whole),
            TargetPdu::ScsiResponse(pdu) => {
                if let Some(task) = self.tasks.get_mut(&pdu.itt) {
                    let is_ahead =
                        self.parameters.split == SplitLanes::Three && task.misses(pdu.exp_data_sn.0);
                    reached.count_many(Way::StatusBeforeData, is_ahead.into());
                    task.learn_end(pdu.exp_data_sn.0);
                }
            }
            _ => {}
        }
        match pdu {
            TargetPdu::ScsiResponse(pdu) => self.hear_status(pdu.itt, pdu.status),
            TargetPdu::DataIn(DataIn { itt, status: Some(status), .. }) => {
                self.hear_status(*itt, status.status);
            }
            TargetPdu::TaskManagementResponse(pdu) => self.end_function(pdu.itt, pdu.outcome),
            _ => {}
        }
    }

    fn hear_number(&mut self, itt: Itt, number: u32, is_whole: bool) {
        let task = self.tasks.get_mut(&itt);
        task.into_iter().for_each(|task| task.arrive(number, is_whole));
    }

    /// A window has reached the initiator.
    pub fn hear_window(&mut self, max_cmd_sn: CmdSn) {
        if self.max_cmd_sn.precedes(max_cmd_sn) {
            self.max_cmd_sn = max_cmd_sn;
        }
    }

    fn hear_status(&mut self, itt: Itt, status: u8) {
        self.identified.extend(self.identifications.remove(&itt).filter(|_| status == GOOD));
        self.end_task(itt);
    }

    fn end_task(&mut self, itt: Itt) {
        if let Some(task) = self.tasks.get_mut(&itt) {
            task.end();
        }
    }

    fn end_function(&mut self, itt: Itt, outcome: TaskManagementOutcome) {
        let Some(function) = self.functions.remove(&itt) else { return };
        match function.function {
            TaskManagementFunction::AbortTask if has_aborted(outcome) => {
                self.end_task(function.referenced_task);
            }
            TaskManagementFunction::AbortTask | TaskManagementFunction::TaskReassign => {}
            _ if outcome == TaskManagementOutcome::FunctionComplete => {
                let units = Units::of(&function);
                let ended = self.tasks.values_mut().filter(|task| concerns(units, function.cmd_sn, task));
                ended.for_each(TaskWatch::end);
            }
            _ => {}
        }
    }
}

/// Whether a function over many tasks of these units, at `cmd_sn`, is about this one.
fn concerns(units: Units, cmd_sn: CmdSn, task: &TaskWatch) -> bool {
    task.is_before(cmd_sn) && units.contain(task.lun())
}

/// Whether a connection's session has others.
fn is_one_of_several(connection: ConnectionId, lanes: &Lanes) -> bool {
    let Some(one) = lanes.get(&connection) else { return false };
    lanes.values().filter(|lane| lane.session == one.session && !lane.is_gone()).count() > 1
}

/// Whether the answer to ABORT TASK says that the task is no more.
fn has_aborted(outcome: TaskManagementOutcome) -> bool {
    matches!(outcome, TaskManagementOutcome::TaskDoesNotExist | TaskManagementOutcome::FunctionComplete)
}
