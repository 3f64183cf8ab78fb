//! One session of a host: its connections, from their logins on, and the commands that are on it.

use super::context::Context;
use crate::checker::SessionKey;
use crate::network::{ConnectionId, LoginStream, Side, Wire, bytes_of};
use crate::reached::Way;
use pdu::{Cid, CmdSn, Duration, Instant, Isid, Itt, LaneId, LoginStatus, StatSn, Tsih};
use session::initiator::{FunctionId, Session, TaskId};
use session::login::initiator::{Config, Failure, Joining, Login, Progress};
use session::parameters::{InitiatorLimits, Offer, SessionParameters};
use session::seam::{Endpoint, LaneLoss};
use std::collections::HashMap;

/// The iSCSI name of the target.
pub const TARGET_NAME: &str = "iqn.2026-01.org.ropewalk:sim";

/// What a session is to be like.
#[derive(Clone, Debug)]
pub struct PathPlan {
    /// Connections that it should have, if the target takes as many.
    pub connections: u16,
    /// What its logins propose.
    pub offer: Offer,
}

/// The pause before a login that failed is tried again.
const RETRY_PAUSE_MS: (u64, u64) = (20, 500);

/// How long a login may take; a target waits up to twenty seconds for an old session's writes.
const LOGIN_PATIENCE: Duration = Duration::from_secs(40);

#[derive(Debug)]
enum Link {
    Login { login: Box<Login>, stream: LoginStream, sent_bytes: u64, leading: bool, until: Instant },
    Up(Box<Wire>),
}

/// A connection of a session.
#[derive(Debug)]
pub(super) struct Lane {
    pub connection: ConnectionId,
    pub lane: LaneId,
    link: Link,
}

impl Lane {
    pub(super) fn wire(&mut self) -> Option<&mut Wire> {
        match &mut self.link {
            Link::Up(wire) => Some(wire),
            Link::Login { .. } => None,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.link, Link::Up(_))
    }
}

/// What became of a connection in login.
pub(super) enum LoginOutcome {
    /// It goes on.
    GoesOn,
    /// The session is there, and the old one of its name is dead. Bytes that came after the login.
    Leads(Vec<u8>),
    /// One more connection.
    Joins(Vec<u8>),
    /// It failed.
    Failed,
}

/// One session. It keeps its ISID when it is lost and comes back.
pub(super) struct Path {
    pub plan: PathPlan,
    pub core: Option<Session>,
    pub lanes: Vec<Lane>,
    pub tasks: HashMap<TaskId, usize>,
    /// Operations that wait for the proof that the old nexus is dead.
    pub stranded: Vec<usize>,
    pub key: SessionKey,
    pub parameters: Option<SessionParameters>,
    /// When to connect again, if something is missing.
    pub connect_at: Option<Instant>,
    /// Logged out for good.
    pub over: bool,
    /// An orderly end was asked for.
    pub leaving: bool,
    /// When the last fault ended that touches this session only.
    pub disturbed_until: Instant,
    /// Resets of the logical unit that were not answered.
    pub resets: Vec<FunctionId>,
    /// When its leading login was done.
    begun: Instant,
    /// When it last had a connection.
    up_at: Instant,
    /// The CID of a connection that broke, if the next is to take its place.
    replaces: Option<Cid>,
    initiator_name: String,
    isid: Isid,
    tsih: Tsih,
    next_cid: u16,
    next_lane: u32,
}

impl Path {
    pub(super) fn new(initiator_name: String, isid: Isid, plan: PathPlan) -> Self {
        Self {
            plan,
            core: None,
            lanes: Vec::new(),
            tasks: HashMap::new(),
            stranded: Vec::new(),
            key: SessionKey(0),
            parameters: None,
            connect_at: Some(Instant::ZERO),
            over: false,
            leaving: false,
            disturbed_until: Instant::ZERO,
            resets: Vec::new(),
            begun: Instant::ZERO,
            up_at: Instant::ZERO,
            replaces: None,
            initiator_name,
            isid,
            tsih: Tsih::NEW_SESSION,
            next_cid: 0,
            next_lane: 0,
        }
    }

    pub(super) fn lane_of(&mut self, connection: ConnectionId) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.connection == connection)
    }

    /// Makes the connections that are missing: the leading one first.
    pub(super) fn connect(&mut self, context: &mut Context<'_>) {
        self.connect_at = None;
        if self.over || self.leaving {
            return;
        }
        let wanted = match (&self.core, self.parameters) {
            (Some(_), Some(parameters)) => self.plan.connections.min(parameters.max_connections),
            _ => 1,
        };
        while self.lanes.len() < usize::from(wanted) {
            self.begin_login(context);
        }
    }

    fn begin_login(&mut self, context: &mut Context<'_>) {
        let connection = context.network.connect(context.now);
        let replaced = self.replaces.take().filter(|_| self.core.is_some());
        let cid = replaced.unwrap_or(Cid(self.next_cid));
        if replaced.is_some() {
            context.tally.reached.count(Way::ConnectionReinstated);
        } else {
            self.next_cid = self.next_cid.wrapping_add(1);
        }
        let joining = self.parameters.filter(|_| self.core.is_some());
        let leading = joining.is_none();
        let config = Config {
            initiator_name: self.initiator_name.clone(),
            initiator_alias: None,
            target_name: Some(TARGET_NAME.into()),
            isid: self.isid,
            cid,
            joining: joining.map(|session| Joining {
                tsih: self.tsih,
                session,
                replaced_exp_stat_sn: self.core.as_ref().map_or(StatSn(0), |core| core.exp_stat_sn(cid)),
            }),
            cmd_sn: self.core.as_ref().map_or_else(|| CmdSn(context.random_word()), Session::cmd_sn),
            offer: self.plan.offer,
            credentials: None,
            entropy: [7; session::chap::ENTROPY_BYTES],
        };
        let mut login = Box::new(Login::new(config));
        let first = bytes_of(&login.start());
        context.network.send(context.now, connection, Side::Initiator, &first);
        let lane = LaneId(self.next_lane);
        self.next_lane += 1;
        let link = Link::Login {
            login,
            stream: LoginStream::default(),
            sent_bytes: first.len() as u64,
            leading,
            until: context.now + LOGIN_PATIENCE,
        };
        self.lanes.push(Lane { connection, lane, link });
        context.tally.connections += 1;
    }

    /// Bytes for a connection in login.
    pub(super) fn log_in(
        &mut self,
        context: &mut Context<'_>,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> LoginOutcome {
        let Some(at) = self.lanes.iter().position(|lane| lane.connection == connection) else {
            return LoginOutcome::GoesOn;
        };
        let Link::Login { login, stream, sent_bytes, leading, .. } = &mut self.lanes[at].link else {
            return LoginOutcome::GoesOn;
        };
        stream.feed(bytes);
        loop {
            let pdu = match stream.next_pdu() {
                Ok(Some(pdu)) => pdu,
                Ok(None) => return LoginOutcome::GoesOn,
                Err(_) => return LoginOutcome::Failed,
            };
            match login.receive(&pdu.header, &pdu.data) {
                Progress::Send(request) => {
                    let bytes = bytes_of(&request);
                    *sent_bytes += bytes.len() as u64;
                    context.network.send(context.now, connection, Side::Initiator, &bytes);
                }
                Progress::Refused(reason) => {
                    context.trace(|| format!("connection {} refused: {reason}", connection.0));
                    if reason == Failure::Refused(LoginStatus::SessionDoesNotExist) {
                        self.forgotten(context);
                    }
                    return LoginOutcome::Failed;
                }
                Progress::Redirected { .. } => {
                    return LoginOutcome::Failed;
                }
                Progress::Established(established) => {
                    let (leading, sent_bytes) = (*leading, *sent_bytes);
                    let rest = std::mem::take(stream).into_rest();
                    return self.established(context, at, &established, leading, sent_bytes, rest);
                }
            }
        }
    }

    fn established(
        &mut self,
        context: &mut Context<'_>,
        at: usize,
        established: &session::parameters::Established,
        leading: bool,
        sent_bytes: u64,
        rest: Vec<u8>,
    ) -> LoginOutcome {
        let Lane { connection, lane, .. } = self.lanes[at];
        context.trace(|| format!("connection {} established: {established:?}", connection.0));
        if leading {
            let limits = InitiatorLimits {
                commands_max: 1024,
                ping_after: context.ping_after,
                ping_timeout: context.ping_timeout,
            };
            self.core = Some(Session::new(established.session, limits, established.cmd_sn));
            self.parameters = Some(established.session);
            self.tsih = established.tsih;
            self.key = context.new_session();
            self.begun = context.now;
        } else if self.core.is_none() || self.tsih != established.tsih {
            return LoginOutcome::Failed;
        }
        context.tap.establish(self.key, connection, established);
        if let Some(core) = &mut self.core {
            core.add_lane(context.now, lane, established);
        }
        let wire = Wire::new(connection, Side::Initiator, lane, &established.connection, sent_bytes);
        self.lanes[at].link = Link::Up(Box::new(wire));
        if leading { LoginOutcome::Leads(rest) } else { LoginOutcome::Joins(rest) }
    }

    /// A connection is gone, or given up.
    pub(super) fn drop_lane(&mut self, context: &mut Context<'_>, connection: ConnectionId, loss: LaneLoss) {
        let Some(at) = self.lanes.iter().position(|lane| lane.connection == connection) else { return };
        let lane = self.lanes.remove(at);
        context.network.close(context.now, connection, Side::Initiator);
        if lane.is_up()
            && let Some(core) = &mut self.core
        {
            core.lane_lost(context.now, lane.lane, loss);
            self.up_at = context.now;
        }
        self.retry_later(context);
    }

    /// The last connection broke: the next may take its place.
    pub(super) fn lost_last(&mut self, context: &mut Context<'_>, cid: Cid) {
        self.replaces = context.random.one_in(2).then_some(cid);
    }

    /// What is wrong with the loss of this session, if anything: at error recovery level 2 it survives the loss of its
    /// connections for Time2Retain at either end, if the target does not crash.
    pub(super) fn loss_is_wrong(&self, context: &Context<'_>) -> Option<String> {
        let parameters = self.parameters.filter(|parameters| parameters.error_recovery_level == 2)?;
        let alone = context.now.saturating_duration_since(self.up_at);
        let retain = Duration::from_secs(parameters.default_time2retain_s.into());
        (!self.leaving && alone < retain && !self.may_be_forgotten(context, retain))
            .then(|| format!("lost at error recovery level 2, the last connection {alone:?} ago"))
    }

    /// Whether the target may know this session no more.
    fn may_be_forgotten(&self, context: &Context<'_>, retain: Duration) -> bool {
        let has_crashed = context.excuses.crashed_at.is_some_and(|crashed| self.begun <= crashed);
        has_crashed || context.tap.alone_longest(context.now, self.tsih) >= retain
    }

    /// Whether the target may have given up a task, because it has waited for its reassignment for Time2Retain.
    pub(super) fn may_be_given_up(&self, context: &Context<'_>, task: TaskId) -> bool {
        let retain = self.parameters.map_or(0, |parameters| parameters.default_time2retain_s);
        context.tap.orphaned(context.now, self.key, Itt(task.0)) >= Duration::from_secs(retain.into())
    }

    /// The target says that it does not know this session.
    fn forgotten(&self, context: &mut Context<'_>) {
        let living = self.core.is_some() && !self.leaving;
        let Some(parameters) = self.parameters.filter(|_| living) else { return };
        let retain = Duration::from_secs(parameters.default_time2retain_s.into());
        if parameters.error_recovery_level == 2 && !self.may_be_forgotten(context, retain) {
            let alone = context.tap.alone_longest(context.now, self.tsih);
            context.violate(format!(
                "a session of error recovery level 2 is forgotten, {alone:?} after its last connection"
            ));
        }
    }

    /// Connects again after a pause, unless that is planned already.
    pub(super) fn retry_later(&mut self, context: &mut Context<'_>) {
        if !self.over && !self.leaving && self.connect_at.is_none() {
            let pause = Duration::from_millis(context.random.between(RETRY_PAUSE_MS.0, RETRY_PAUSE_MS.1));
            self.connect_at = Some(context.now + pause);
        }
    }

    /// The session is over: its connections go with it.
    pub(super) fn end(&mut self, context: &mut Context<'_>) {
        self.core = None;
        context.tap.end(self.key);
        for lane in std::mem::take(&mut self.lanes) {
            context.network.close(context.now, lane.connection, Side::Initiator);
        }
        if self.leaving {
            self.over = true;
        }
        self.retry_later(context);
    }

    /// When [`Self::on_time`] has something to do.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let logins = self.lanes.iter().filter_map(|lane| match &lane.link {
            Link::Login { until, .. } => Some(*until),
            Link::Up(_) => None,
        });
        let core = self.core.as_ref().and_then(Endpoint::poll_timeout);
        logins.chain(core).chain(self.connect_at).min()
    }

    /// Does what is due.
    pub(super) fn on_time(&mut self, context: &mut Context<'_>) {
        let now = context.now;
        if let Some(core) = &mut self.core
            && core.poll_timeout().is_some_and(|at| at <= now)
        {
            core.handle_timeout(now);
        }
        let late = |lane: &Lane| matches!(&lane.link, Link::Login { until, .. } if *until <= now);
        let late: Vec<_> = self.lanes.iter().filter(|lane| late(lane)).map(|lane| lane.connection).collect();
        late.into_iter().for_each(|connection| self.drop_lane(context, connection, LaneLoss::Broken));
        if self.connect_at.is_some_and(|at| at <= now) {
            self.connect(context);
        }
    }
}
