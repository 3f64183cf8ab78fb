//! Listens to both ends of every connection: may this be sent now?
//!
//! What is sent is judged by what that side had received: a command by the greatest MaxCmdSN that had reached the
//! initiator, an R2T by the Data-Out that had reached the target. The bytes between are not looked at; that they say
//! what was sent is the business of digests and of the blocks' contents.

use super::Violation;
use super::attention_watch::AttentionWatch;
use super::lane_watch::{LaneWatch, status_number};
use super::number_map::NumberMap;
use super::presence::Presence;
use super::reject_watch::RejectWatch;
use super::reservation_history::Port;
use super::session_watch::{Lanes, SessionWatch};
use crate::network::{ConnectionId, Part, Rejected, Side};
use crate::portal::PortalId;
use crate::reached::{Reached, Way};
use crate::unit::{TargetIndex, UnitIndex};
use pdu::{
    AsyncEvent, CmdSn, Duration, Header, InitiatorPdu, Instant, Isid, Lun, Opcode, RejectReason, StatSn,
    TargetPdu, TaskManagementOutcome, Tsih, Window,
};
use scsi::Outcome;
use session::parameters::{Established, Identity, LaneRole, SessionType};
use session::target::Command;
use std::collections::{HashMap, HashSet, VecDeque};

/// One session from its leading login to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u32);

/// One session as its target knows it: each target counts its sessions by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetSession {
    /// The target that counts it.
    pub target: TargetIndex,
    /// Its number there.
    pub tsih: Tsih,
}

/// What both sides of all sessions may do.
#[derive(Debug, Default)]
pub struct Tap {
    sessions: NumberMap<SessionKey, SessionWatch>,
    lanes: Lanes,
    /// The sessions as the target knows them.
    by_tsih: NumberMap<TargetSession, SessionKey>,
    presences: NumberMap<TargetSession, Presence>,
    /// The sessions that the targets began last between two ports.
    between: HashMap<(TargetIndex, (Port, u16)), (TargetSession, Isid)>,
    /// The last session that the target began under each number, and of each initiator port.
    born: NumberMap<TargetSession, SessionKey>,
    of_port: HashMap<SessionPorts, SessionKey>,
    sessions_born: u32,
    /// The connections that the targets have admitted since they last began to run, each with its session.
    admitted: NumberMap<ConnectionId, SessionKey>,
    /// The CmdSN that was next in each session when a connection was begun that has not logged in.
    dialed: NumberMap<ConnectionId, NumberMap<SessionKey, CmdSn>>,
    /// The next status of lanes that are established at their target only.
    early: NumberMap<ConnectionId, StatSn>,
    /// Sessions that an initiator was told of by a target that had died by then. Nobody watches them.
    unwatched: HashSet<(SessionPorts, TargetSession)>,
    violation: Option<Violation>,
    rejects: RejectWatch,
    /// What becomes of the PDUs that targets have sent and that have not arrived.
    on_their_way: NumberMap<ConnectionId, VecDeque<(Header, Option<Part>)>>,
    /// The units of all targets, and the lengths of their blocks.
    pub block_bytes: Vec<((TargetIndex, Lun), u32)>,
    /// What nexuses are told of.
    pub attentions: AttentionWatch,
    /// SCSI commands that initiators sent, those sent again included.
    pub commands: u64,
    /// PDUs in full feature phase.
    pub pdus: u64,
    /// What went another way than usual.
    pub reached: Reached,
    /// Lines for a reader, if one wants them.
    pub trace: Option<Vec<String>>,
}

impl Tap {
    /// An initiator begins a connection.
    pub fn initiator_dials(&mut self, connection: ConnectionId) {
        let next = self.sessions.iter().map(|(key, session)| (*key, session.next_cmd_sn()));
        self.dialed.insert(connection, next.collect());
    }

    /// A login asks to join a session: one that there was, with the CmdSN that is next in it (RFC 7143 §11.12.8).
    pub fn target_is_asked(
        &mut self,
        connection: ConnectionId,
        session: TargetSession,
        identity: &Identity,
        cmd_sn: CmdSn,
    ) {
        let Some(key) = self.by_tsih.get(&session) else {
            if self.unwatched.contains(&(port(identity), session)) {
                return;
            }
            return self.violate("a login asks for a session that no target has begun");
        };
        let next = self.dialed.get(&connection).and_then(|next| next.get(key).copied());
        let is_current = self.of_port.get(&port(identity)) == Some(key);
        // A connection that was made late to a session whose target has died meanwhile is not watched, and its
        // initiator has heard more than is known here.
        let is_watched = is_current && self.born.get(&session) == Some(key);
        if let (Some(watch), Some(next), true) = (self.sessions.get(key), next, is_watched)
            && (cmd_sn.precedes(next) || watch.is_beyond_window(cmd_sn))
        {
            self.violate(&format!("a login joins with CmdSN {} where {} was next", cmd_sn.0, next.0));
        }
    }

    /// A connection's login is done, as its initiator sees it: its session is the one that the target has under that name.
    /// The initiator gives its name to no other connection that it keeps. All connections of a session lead to portals of
    /// one group (RFC 7143 §4.1.1), which is told as what it is.
    pub fn establish(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        established: &Established,
        (portal, portal_group): (PortalId, u16),
        is_kept: impl Fn(ConnectionId) -> bool,
    ) {
        if established.session.session_type == SessionType::Discovery {
            return;
        }
        let Some(target) = TargetIndex::from_name(&established.identity.target_name) else { return };
        let known_as = TargetSession { target, tsih: established.tsih };
        let port = port(&established.identity);
        let dialed = self.dialed.remove(&connection).unwrap_or_default();
        // A target may die after it has answered the login: then nobody is there to be listened to, and another session
        // may have the number. The answer told a window all the same, to the session that it is joined to.
        let Some(key) = self.admitted.get(&connection).copied() else {
            let present = self.of_port.get(&port).filter(|key| dialed.contains_key(key));
            let present = present.and_then(|key| self.sessions.get_mut(key));
            match present.filter(|present| present.known_as == known_as) {
                Some(present) => present.hear_window(established.window.max_cmd_sn),
                None => drop(self.unwatched.insert((port, known_as))),
            }
            return;
        };
        // A login that comes so late that its initiator has begun another session meanwhile: it will not be used.
        if self.of_port.get(&port).is_some_and(|present| present.0 > key.0) {
            return;
        }
        let is_namesake = |lane: &LaneWatch| lane.session == key && lane.cid == established.cid;
        let namesakes = self.lanes.iter().filter(|(_, lane)| is_namesake(lane)).map(|(id, _)| *id);
        let (kept, replaced): (Vec<_>, Vec<_>) = namesakes.partition(|id| is_kept(*id));
        if !replaced.is_empty() {
            self.reached.count(Way::ConnectionReinstated);
        }
        if let Some(kept) = kept.first() {
            self.violate(&format!(
                "connection {} takes the place of {}, which is kept",
                connection.0, kept.0
            ));
        }
        if let Some(before) = self.of_port.insert(port, key)
            && before != key
        {
            self.reached.count(Way::SessionReplaced);
            self.end(before);
        }
        if self.trace.is_some() {
            let line = format!("connection {} established: {established:?}", connection.0);
            self.trace.iter_mut().for_each(|trace| trace.push(format!("{:>14} {line}", now.0)));
        }
        self.by_tsih.insert(known_as, key);
        self.unwatched.retain(|(_, unwatched)| *unwatched != known_as);
        let of_target = self.block_bytes.iter().filter(|((owner, _), _)| *owner == target);
        let block_bytes = of_target.map(|((_, lun), bytes)| (*lun, *bytes)).collect();
        let session = self.sessions.entry(key);
        let session =
            session.or_insert_with(|| SessionWatch::new(known_as, established, portal, block_bytes));
        let told = established.identity.portal_group_tag;
        if told != portal_group || told != session.portal_group {
            let (connection, own) = (connection.0, session.portal_group);
            let problem = format!(
                "connection {connection} joins a session of portal group {own} through {portal_group}, told as {told}"
            );
            self.violation.get_or_insert(Violation(problem));
        }
        if portal != session.portal {
            self.reached.count(Way::PortalsShared);
        }
        session.hear_window(established.window.max_cmd_sn);
        let early = self.early.remove(&connection);
        self.lanes.insert(connection, LaneWatch::new(key, established, early));
    }

    /// The target died.
    pub fn crash(&mut self) {
        self.born.clear();
        self.admitted.clear();
        self.between.clear();
        self.presences.clear();
        self.attentions.crash();
    }

    /// The target says to somebody who wants to join this session that there is none in that portal group. At error recovery level 2 it must
    /// remember a session for Time2Retain after its last connection (RFC 7143 §7.5).
    pub fn target_does_not_know(&mut self, now: Instant, session: TargetSession, identity: &Identity) {
        let Some(key) = self.born.get(&session) else { return };
        let Some(watch) = self.sessions.get(key).filter(|watch| !watch.is_leaving) else { return };
        if watch.portal_group != identity.portal_group_tag {
            return self.reached.count(Way::OtherPortalGroup);
        }
        if self.presences.get(&session).is_some_and(|presence| presence.is_ending) {
            return;
        }
        let retain = Duration::from_secs(watch.parameters.default_time2retain_s.into());
        let alone = self.alone_longest(now, session);
        let is_current = self.of_port.get(&port(identity)) == Some(key);
        if watch.parameters.error_recovery_level == 2 && is_current && alone < retain {
            self.violate(&format!(
                "a session of error recovery level 2 is forgotten, {alone:?} after its last connection"
            ));
        }
    }

    /// A session is over at its initiator: nobody hears it any more.
    fn end(&mut self, key: SessionKey) {
        self.sessions.remove(&key);
        self.lanes.retain(|_, lane| lane.session != key);
        self.rejects.end(key);
    }

    /// A login, perhaps a late one, asks for a new session between these ports. It ends the present one.
    pub fn session_is_asked_for(&mut self, target: TargetIndex, ports: (Port, u16), isid: Isid) {
        if let Some((present, _)) = self.between.get(&(target, ports)).filter(|(_, of)| *of == isid) {
            self.presences.entry(*present).or_default().is_ending = true;
        }
    }

    /// The target admits a connection to a session.
    pub fn session_joined(&mut self, session: TargetSession) {
        // It may take the place of another, which is lost by that.
        self.attentions.connection_lost(session);
    }

    /// The target admits a connection to a new session between these ports.
    pub fn session_begins(&mut self, session: TargetSession, port: (Port, u16), isid: Isid) {
        let present = self.between.get(&(session.target, port)).filter(|(_, of)| *of != isid);
        let presence = present.and_then(|(present, _)| self.presences.get(present));
        // A host that gave a login up logs in with another ISID. If the first comes late, its nexus is none of those
        // that are watched.
        if presence.is_some_and(Presence::has_connections) {
            return;
        }
        self.between.insert((session.target, port), (session, isid));
        self.attentions.session_begins(session, port);
    }

    /// The target has one more connection of a session; of a new one, if that is `leading`.
    pub fn target_gains(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        session: TargetSession,
        leading: bool,
    ) {
        if leading {
            self.presences.remove(&session);
            self.sessions_born += 1;
            self.born.insert(session, SessionKey(self.sessions_born));
        }
        if let Some(key) = self.born.get(&session) {
            self.admitted.insert(connection, *key);
        }
        self.presences.entry(session).or_default().join(now);
    }

    /// The target tells that a session ends, and need not keep it (§11.9.1). Its initiator may hear that late, or never.
    pub fn target_ends(&mut self, session: TargetSession) {
        self.presences.entry(session).or_default().is_ending = true;
    }

    /// The target knows a connection no more, which its initiator still could have used, if that is `usable`.
    pub fn target_loses(
        &mut self,
        now: Instant,
        session: TargetSession,
        connection: ConnectionId,
        usable: bool,
    ) {
        self.presences.entry(session).or_default().leave(now);
        self.attentions.connection_lost(session);
        if let Some(lane) = self.lanes.get_mut(&connection) {
            lane.gone_since = Some(now);
            // The request to close the session may be on a connection that is broken, which its initiator cannot know.
            let is_leaving = self.sessions.get(&lane.session).is_some_and(|watch| watch.is_leaving);
            if lane.obeys() {
                self.reached.count(Way::SessionLeftOnRequest);
            } else if usable && lane.is_overdue(now) && !is_leaving {
                self.violate("an initiator that was asked to log out a session has not done so");
            }
        }
    }

    /// How long a session was without a connection at its target, at the most.
    fn alone_longest(&self, now: Instant, session: TargetSession) -> Duration {
        self.presences.get(&session).map_or(Duration::ZERO, |presence| presence.alone_longest(now))
    }

    /// A command of a session reaches the device server.
    pub fn command_begins(&mut self, session: TargetSession, unit: Option<UnitIndex>, command: &Command) {
        // Not of a session that took its number meanwhile, and that nobody listens to.
        let key = self.by_tsih.get(&session).filter(|key| self.born.get(&session) == Some(*key));
        let watch = key.and_then(|key| self.sessions.get_mut(key));
        if let (Some(watch), Some(cmd_sn)) = (watch, command.cmd_sn)
            && let Err(problem) = watch.hand_out(cmd_sn)
        {
            self.violation.get_or_insert(Violation(format!("device server: {problem}")));
        }
        if let Some(unit) = unit
            && let Err(problem) = self.attentions.command_begins(session, unit, command.cdb.bytes())
        {
            self.violate(&problem);
        }
    }

    /// The command that began last is refused at once.
    pub fn command_refused(&mut self, session: TargetSession, unit: UnitIndex, outcome: &Outcome) {
        if let Err(problem) = self.attentions.command_refused(session, unit, outcome, &mut self.reached) {
            self.violate(&problem);
        }
    }

    /// Something is wrong.
    pub fn violate(&mut self, what: &str) {
        self.violation.get_or_insert(Violation(what.into()));
    }

    /// What was found wrong first.
    pub fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    /// One side sends this.
    pub fn sent(&mut self, now: Instant, connection: ConnectionId, side: Side, header: &Header) {
        self.pdus += 1;
        self.commands += u64::from(header.opcode() == Ok(Opcode::ScsiCommand));
        let problem = match side {
            Side::Initiator => self.initiator_sends(now, connection, header),
            Side::Target => self.target_sends(now, connection, header),
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

    fn initiator_sends(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        header: &Header,
    ) -> Result<(), String> {
        let responses = self.with_role(connection, LaneRole::Responses);
        let next_status = self.next_status(responses);
        let Some(lane) = self.lanes.get_mut(&connection) else { return Ok(()) };
        let segment_bytes = header.data_segment_bytes();
        if segment_bytes > lane.segment_bytes_max[Side::Initiator as usize] {
            return Err(format!("a data segment of {segment_bytes} bytes"));
        }
        let Some(session) = self.sessions.get_mut(&lane.session) else { return Ok(()) };
        let pdu = InitiatorPdu::parse(header).map_err(|error| error.to_string())?;
        self.rejects.initiator_sends(now, lane.session, &pdu)?;
        lane.check_initiators(&pdu)?;
        if let Some(next) = next_status.filter(|next| next.precedes(pdu.exp_stat_sn())) {
            return Err(format!("ExpStatSN {} where StatSN {} is next", pdu.exp_stat_sn().0, next.0));
        }
        lane.initiator_sends(&pdu)?;
        if !self.rejects.is_abort_of_rejected(lane.session, &pdu) {
            session.check_abort(now, &pdu, &mut self.reached)?;
        }
        if let Some(lane) = self.lanes.get_mut(&responses) {
            session.check_data_ack(responses, lane, &pdu)?;
            lane.initiator_acknowledges(&pdu);
        }
        session.initiator_sends(pdu, &mut self.reached)
    }

    fn target_sends(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        header: &Header,
    ) -> Result<(), String> {
        let next_status = self.next_status(self.with_role(connection, LaneRole::Responses));
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
            session.target_tells(window)?;
        }
        lane.check_targets(&pdu, session.parameters.split)?;
        if let (TargetPdu::NopIn(pdu), false, Some(next)) = (&pdu, lane.bears_statuses(), next_status)
            && pdu.stat_sn != next
        {
            return Err(format!("StatSN {} beside the responses, where {} is next", pdu.stat_sn.0, next.0));
        }
        if matches!(&pdu, TargetPdu::NopIn(ping) if ping.ttt.is_some()) {
            lane.send_ping(now, session.parameters.error_recovery_level)?;
        }
        if let TargetPdu::Reject(reject) = &pdu {
            way_of(reject.reason).into_iter().for_each(|way| self.reached.count(way));
        }
        if let Some(stat_sn) = lane.status_number(&pdu) {
            if lane.send_status(stat_sn, &pdu, session.parameters.error_recovery_level)? {
                self.reached.count(Way::StatusAgain);
            } else {
                if stat_sn == StatSn(u32::MAX) {
                    self.reached.count(Way::StatusNumbersWrapped);
                }
                session.target_answers(now, connection, stat_sn, &pdu, &self.lanes)?;
                if let TargetPdu::TaskManagementResponse(response) = &pdu
                    && response.outcome == TaskManagementOutcome::FunctionComplete
                {
                    self.attentions.function_complete(session.known_as, response.itt);
                }
            }
        }
        session.target_sends(connection, &pdu, &mut self.reached)
    }

    /// The PDU that a target has just sent arrives, with this part damaged.
    pub fn is_on_its_way(&mut self, connection: ConnectionId, header: &Header, damaged: Option<Part>) {
        self.on_their_way.entry(connection).or_default().push_back((header.clone(), damaged));
    }

    /// A PDU of a target has arrived with an undamaged header. Whether all of it is undamaged. Those before it may have
    /// been passed over, because of a damaged length, or have been replaced on their way.
    fn is_whole(&mut self, connection: ConnectionId, header: &Header) -> bool {
        let fates = self.on_their_way.entry(connection).or_default();
        let place = fates.iter().position(|(sent, damaged)| *damaged != Some(Part::Header) && sent == header);
        let Some(place) = place else { return true };
        fates.drain(..=place).next_back().is_none_or(|(_, damaged)| damaged.is_none())
    }

    /// One end has received this.
    pub fn received(&mut self, now: Instant, connection: ConnectionId, side: Side, header: &Header) {
        if self.trace.is_some() {
            self.note(now, connection, side.peer(), "is heard:", header);
        }
        let is_whole = side == Side::Target || self.is_whole(connection, header);
        let mut asked = None;
        let responses = self.with_role(connection, LaneRole::Responses);
        let Some(lane) = self.lanes.get_mut(&connection) else { return };
        let Some(session) = self.sessions.get_mut(&lane.session) else { return };
        match side {
            Side::Target => {
                if let Ok(pdu) = InitiatorPdu::parse(header) {
                    session.target_hears(connection, responses, &pdu);
                    if let Some(lane) = self.lanes.get_mut(&responses) {
                        lane.target_hears(now, responses == connection, &pdu);
                    }
                    match &pdu {
                        InitiatorPdu::TaskManagementRequest(function) => {
                            self.attentions.function_arrives(session.known_as, function);
                        }
                        InitiatorPdu::LogoutRequest(_) => self.attentions.session_leaves(session.known_as),
                        _ => {}
                    }
                }
            }
            Side::Initiator => {
                let Ok(pdu) = TargetPdu::parse(header) else { return };
                lane.initiator_hears(&pdu, is_whole);
                session.initiator_hears(&pdu, is_whole, &mut self.reached);
                if !is_whole {
                    self.rejects.excuse();
                }
                match &pdu {
                    TargetPdu::AsyncMessage(message) => {
                        self.rejects.excuse();
                        asked = Some(message.event);
                    }
                    // Tasks that the function has ended, or that it was to move and could not, are lost. For a write,
                    // its client gives the session up.
                    TargetPdu::TaskManagementResponse(_) => self.rejects.excuse(),
                    _ => {}
                }
                if let Some(window) = window_of(&pdu) {
                    session.hear_window(window.max_cmd_sn);
                }
            }
        }
        if let Some(AsyncEvent::LogoutRequest { seconds_max }) = asked {
            self.hear_logout_request(now, connection, seconds_max);
        }
    }

    /// The next StatSN of a split session, whose responses this connection carries.
    fn next_status(&self, responses: ConnectionId) -> Option<StatSn> {
        let lane = self.lanes.get(&responses)?;
        (lane.role == LaneRole::Responses).then(|| lane.next_status())
    }

    /// The connection of this role in a connection's split session; in another session, the connection itself.
    fn with_role(&self, connection: ConnectionId, role: LaneRole) -> ConnectionId {
        let Some(lane) = self.lanes.get(&connection).filter(|lane| lane.role != LaneRole::Whole) else {
            return connection;
        };
        let is_it = |other: &LaneWatch| other.session == lane.session && other.role == role;
        let found = self.lanes.iter().find(|(_, other)| is_it(other)).map(|(id, _)| *id);
        found.unwrap_or(connection)
    }

    /// An initiator is asked to log out a connection. The bundle of a split session is one.
    fn hear_logout_request(&mut self, now: Instant, connection: ConnectionId, seconds_max: u16) {
        let connection = self.with_role(connection, LaneRole::Requests);
        let session = self.lanes.get(&connection).map(|lane| lane.session);
        let of_session = self.lanes.values().filter(|lane| Some(lane.session) == session);
        let leads = |lane: &&LaneWatch| matches!(lane.role, LaneRole::Whole | LaneRole::Requests);
        let is_only = of_session.filter(|lane| !lane.is_gone()).filter(leads).count() == 1;
        if let Some(lane) = self.lanes.get_mut(&connection).filter(|_| is_only) {
            lane.ask_for_logout(now + Duration::from_secs(seconds_max.into()));
        }
    }

    /// An initiator has received the Reject of a PDU that a path did not pass on.
    pub fn hear_reject(&mut self, now: Instant, connection: ConnectionId, rejected: &Rejected) {
        if let Some(lane) = self.lanes.get(&connection) {
            self.rejects.hear(now, (lane.session, connection), rejected, &mut self.reached);
        }
    }

    /// Whether somebody has asked in vain for a PDU that came damaged.
    pub fn has_refused_data(&self) -> bool {
        [Way::SnackRejected, Way::SnackRefused].into_iter().any(|way| self.reached.of(way) > 0)
    }

    /// Whether a PDU with a damaged header is on its way to an initiator, or has just come.
    fn may_be_damaged(&self, connection: ConnectionId) -> bool {
        let fates = self.on_their_way.get(&connection);
        fates.is_some_and(|fates| fates.iter().any(|(_, damaged)| *damaged == Some(Part::Header)))
    }

    /// Initiators have just left these connections, which worked.
    pub fn initiators_leave(&mut self, left: &[ConnectionId]) {
        let survivors = self.rejects.take_survivors();
        let is_wrong =
            |connection: &&ConnectionId| left.contains(connection) && !self.may_be_damaged(**connection);
        if let Some(connection) = survivors.iter().find(is_wrong) {
            self.violate(&format!("initiator: connection {} is given up for a Reject", connection.0));
        }
    }
}

/// The initiator port of a session, and the name of its target.
type SessionPorts = (String, Isid, String);

fn port(identity: &Identity) -> SessionPorts {
    (identity.initiator_name.clone(), identity.isid, identity.target_name.clone())
}

/// Why a target rejects PDUs.
fn way_of(reason: RejectReason) -> Option<Way> {
    Some(match reason {
        RejectReason::DataDigestError => Way::DamagedDataRejected,
        RejectReason::CommandNotSupported => Way::UnknownOpcodeRejected,
        RejectReason::SnackReject | RejectReason::ProtocolError => Way::SnackRefused,
        RejectReason::InvalidDataAck => Way::DataAckRefused,
        RejectReason::ImmediateCommandReject => Way::ImmediateCommandRefused,
        _ => return None,
    })
}

/// The window that a PDU tells. A Login Response is no part of what is watched here.
fn window_of(pdu: &TargetPdu) -> Option<Window> {
    (!matches!(pdu, TargetPdu::LoginResponse(_))).then(|| pdu.window())
}
