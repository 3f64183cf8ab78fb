//! The target's side of a login.

mod access;
mod refusal;
mod security;

pub use access::{Access, Denial, Directory, Place, Redirection};
pub use refusal::Refusal;

use super::exchange::{Exchange, Incoming};
use crate::chap;
use crate::name;
use crate::negotiation::{Declared, Key, Negotiation, Role};
use crate::parameters::{
    ConnectionParameters, Established, Identity, LaneRole, Offer, SessionParameters, SessionType,
};
use crate::seam::{Payload, Transmit};
use crate::target::Applicant;
use pdu::{
    CmdSn, Header, LoginRequest, LoginResponse, LoginStatus, Opcode, PROTOCOL_VERSION, Stage, StatSn, Tsih,
};
use pdu::{TextWriter, Window, text_keys};
use security::Security;

/// What a driver does next with a connection in login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Send this PDU, then wait for the next one.
    Reply(Transmit),
    /// The login is complete except for its last answer: find its place ([`crate::target::Registry::admit`]), then call
    /// [`Login::admit`].
    Admit(Applicant),
    /// Send the reply, if there is one, then close the connection.
    Refused {
        /// The last PDU; `None` where the standard demands silence.
        reply: Option<Transmit>,
        /// The reason, for the log.
        reason: Refusal,
    },
}

/// One connection's login, from its first byte to its place in a session. It can move to another thread at any step.
#[derive(Clone, Debug)]
pub struct Login {
    portal_group_tag: u16,
    negotiation: Negotiation,
    offer: Offer,
    exchange: Exchange,
    stage: Stage,
    /// The first request. Later requests must repeat its tags and names.
    first: Option<LoginRequest>,
    stat_sn: StatSn,
    initiator: Option<Introduced>,
    /// What the connection is to carry in the session that it joins.
    role: LaneRole,
    security: Security,
    state: State,
}

/// The progress of a login.
#[derive(Clone, Debug)]
enum State {
    /// The login goes on.
    Open,
    /// The login only lacks its place.
    Complete(Box<Complete>),
    /// The login was admitted or refused, and takes no further PDU.
    Over,
}

/// The initiator's first text: its name, and the session that it wants.
#[derive(Clone, Debug)]
struct Introduced {
    initiator_name: String,
    target_name: Option<String>,
}

/// The parameters that a complete login agreed on.
#[derive(Clone, Debug)]
struct Complete {
    request: LoginRequest,
    identity: Identity,
    session: SessionParameters,
    connection: ConnectionParameters,
}

impl Login {
    /// A login over a connection that a portal of this group has just accepted. Its first response has the StatSN
    /// `first`, which may be any (RFC 7143 §11.13.4). `entropy` is for a CHAP challenge and must be fresh for every
    /// connection.
    #[must_use]
    pub fn new(portal_group_tag: u16, offer: Offer, first: StatSn, entropy: &chap::Entropy) -> Self {
        Self {
            portal_group_tag,
            negotiation: Negotiation::new(Role::Target, true, SessionType::Normal, offer),
            offer,
            exchange: Exchange::new(),
            stage: Stage::SecurityNegotiation,
            first: None,
            stat_sn: first,
            initiator: None,
            role: LaneRole::Whole,
            security: Security::new(entropy),
            state: State::Open,
        }
    }

    /// The initiator's name, once its first text has been parsed. The name is only a claim until the login is done.
    #[must_use]
    pub fn initiator_name(&self) -> Option<&str> {
        self.initiator.as_ref().map(|initiator| initiator.initiator_name.as_str())
    }

    /// The target that the initiator wants, once its first text has been parsed. `None` in a discovery session.
    #[must_use]
    pub fn target_name(&self) -> Option<&str> {
        self.initiator.as_ref().and_then(|initiator| initiator.target_name.as_deref())
    }

    /// The CHAP user that the initiator has proven to be, if authentication was demanded.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.security.user()
    }

    /// Whether the next PDU brings the initiator's proof. A driver may delay the proof of a peer that has failed often.
    #[must_use]
    pub fn awaits_proof(&self) -> bool {
        self.security.awaits_proof()
    }

    /// Takes the next PDU.
    pub fn receive(&mut self, header: &Header, data: &[u8], directory: &dyn Directory) -> Progress {
        self.step(header, data, directory).unwrap_or_else(|reason| {
            self.state = State::Over;
            let reply = match &reason {
                Refusal::Access(Denial::Redirected(to)) => self.redirection_response(to),
                _ => reason.status().and_then(|status| self.refusal_response(status)),
            };
            Progress::Refused { reply, reason }
        })
    }

    fn step(&mut self, header: &Header, data: &[u8], directory: &dyn Directory) -> Result<Progress, Refusal> {
        if !matches!(self.state, State::Open) {
            return Err(Refusal::Over);
        }
        let request = self.parse(header)?;
        match self.exchange.receive(data, request.continued)? {
            Incoming::Piece | Incoming::GoOn => return Ok(Progress::Reply(self.respond(&request, None))),
            Incoming::Text(text) => self.take_text(&request, &text, directory)?,
        }
        let next_stage = self.transition(&request)?;
        if next_stage == Some(Stage::FullFeaturePhase) {
            return self.finish(request).map(Progress::Admit);
        }
        let reply = self.respond(&request, next_stage);
        if let Some(next) = next_stage {
            self.stage = next;
        }
        Ok(Progress::Reply(reply))
    }

    /// Parses a header, and checks that it belongs to this login (§6.3.1, §11.12).
    fn parse(&mut self, header: &Header) -> Result<LoginRequest, Refusal> {
        if header.opcode() != Ok(Opcode::LoginRequest) {
            // Before a login the target hangs up; during one it says why (§4.2.3).
            return Err(if self.first.is_some() { Refusal::NotALogin } else { Refusal::Stranger });
        }
        let request = LoginRequest::parse(header)?;
        match self.first {
            None => self.begin(&request)?,
            Some(first) => check_same(&first, &request)?,
        }
        if request.current_stage != self.stage {
            return Err(Refusal::Stage);
        }
        Ok(request)
    }

    fn begin(&mut self, request: &LoginRequest) -> Result<(), Refusal> {
        self.first = Some(*request);
        if request.version_min > PROTOCOL_VERSION {
            return Err(Refusal::Version(request.version_min));
        }
        if request.current_stage == Stage::FullFeaturePhase {
            return Err(Refusal::Stage);
        }
        self.stage = request.current_stage;
        let leading = request.tsih == Tsih::NEW_SESSION;
        self.negotiation = Negotiation::new(Role::Target, leading, SessionType::Normal, self.offer);
        Ok(())
    }

    fn take_text(
        &mut self,
        request: &LoginRequest,
        text: &[u8],
        directory: &dyn Directory,
    ) -> Result<(), Refusal> {
        let pairs: Vec<_> = text_keys::pairs(text).collect::<Result<_, _>>()?;
        let mut answers = TextWriter::new();
        let declared = self.negotiation.receive(self.stage, &pairs, &mut answers)?;
        if self.initiator.is_none() {
            self.introduce(request, &declared, directory, &mut answers)?;
        } else if let Some(&(key, _)) = declared.iter().find(|(key, _)| is_introduction(*key)) {
            return Err(Refusal::Late(key));
        }
        if let Some((_, name)) = declared.iter().find(|(key, _)| *key == Key::Lane) {
            let is_joining = request.tsih != Tsih::NEW_SESSION;
            self.role = LaneRole::of_joining(name).filter(|_| is_joining).ok_or(Refusal::Lane)?;
        }
        let leaving = request.next_stage.is_some();
        // In the operational stage only AuthMethod can come: any proof has been given by now.
        self.security.receive(&declared, leaving, &mut answers)?;
        if self.stage == Stage::OperationalNegotiation {
            self.negotiation.declare(&mut answers);
            if leaving {
                self.negotiation.propose(&mut answers);
            }
        }
        self.exchange.send(answers);
        Ok(())
    }

    /// Takes the first text: the initiator's name, and the session that it wants (§6.3).
    fn introduce(
        &mut self,
        request: &LoginRequest,
        declared: &[Declared<'_>],
        directory: &dyn Directory,
        answers: &mut TextWriter,
    ) -> Result<(), Refusal> {
        let named = |key| name(declared, key);
        let initiator_name = named(Key::InitiatorName)?.ok_or(Refusal::Missing(Key::InitiatorName))?;
        let target_name = match self.negotiation.session_type() {
            SessionType::Normal => Some(named(Key::TargetName)?.ok_or(Refusal::Missing(Key::TargetName))?),
            SessionType::Discovery if request.tsih != Tsih::NEW_SESSION => return Err(Refusal::SessionType),
            SessionType::Discovery => None,
        };
        let introduced =
            Introduced { initiator_name: initiator_name.clone(), target_name: target_name.clone() };
        self.initiator = Some(introduced);
        let access = directory.access(&initiator_name, target_name.as_deref()).map_err(Refusal::Access)?;
        if access.authentication.is_some() && self.stage != Stage::SecurityNegotiation {
            return Err(Refusal::AuthenticationSkipped);
        }
        self.security.demand(access.authentication);
        answers.push(Key::TargetPortalGroupTag.name(), &self.portal_group_tag.to_string());
        self.negotiation.note_sent(Key::TargetPortalGroupTag);
        if let (Some(alias), Some(_)) = (access.alias, target_name) {
            answers.push(Key::TargetAlias.name(), &alias);
            self.negotiation.note_sent(Key::TargetAlias);
        }
        Ok(())
    }

    /// The stage to which this response leads, if the initiator asks for one and the present stage is complete (§6.3).
    fn transition(&self, request: &LoginRequest) -> Result<Option<Stage>, Refusal> {
        let Some(wanted) = request.next_stage else { return Ok(None) };
        if self.stage == Stage::OperationalNegotiation && wanted != Stage::FullFeaturePhase
            || wanted == Stage::SecurityNegotiation
        {
            return Err(Refusal::Stage);
        }
        let skips = self.stage == Stage::SecurityNegotiation && wanted == Stage::FullFeaturePhase;
        // If the target cannot work with the defaults, it selects the operational stage first.
        let next =
            if skips && !self.negotiation.is_settled() { Stage::OperationalNegotiation } else { wanted };
        let ready = match self.stage {
            Stage::SecurityNegotiation => self.security.is_satisfied(),
            _ => !self.negotiation.awaits_answer(),
        };
        Ok((ready && self.exchange.is_last_piece()).then_some(next))
    }

    fn finish(&mut self, request: LoginRequest) -> Result<Applicant, Refusal> {
        let (session, connection) = self.negotiation.finish()?;
        let introduced = self.initiator.clone().ok_or(Refusal::Missing(Key::InitiatorName))?;
        let identity = Identity {
            initiator_name: introduced.initiator_name,
            isid: request.isid,
            target_name: introduced.target_name.unwrap_or_default(),
            portal_group_tag: self.portal_group_tag,
        };
        let applicant = Applicant {
            identity: identity.clone(),
            tsih: request.tsih,
            cid: request.cid,
            user: self.security.user().map(Into::into),
            max_connections: at_a_time(&session),
        };
        self.state = State::Complete(Box::new(Complete { request, identity, session, connection }));
        Ok(applicant)
    }

    /// Ends a login that asked to be admitted. Returns the last PDU, and the established connection if it was admitted.
    ///
    /// A login that has not asked, or a place with a handle of zero, is refused as a target error. A connection that would
    /// carry something else in its session than the session's connections do is refused, too.
    pub fn admit(&mut self, decision: Result<Place, LoginStatus>) -> (Option<Transmit>, Option<Established>) {
        let (place, done) = match (decision, core::mem::replace(&mut self.state, State::Over)) {
            (Ok(place), State::Complete(done)) if place.tsih != Tsih::NEW_SESSION => (place, done),
            (Ok(_), _) => return (self.refusal_response(LoginStatus::TargetError), None),
            (Err(status), _) => return (self.refusal_response(status), None),
        };
        let role = match place.joined {
            None => done.session.split.roles()[0],
            Some(joined) if joined.split.roles().contains(&self.role) => self.role,
            Some(_) => return (self.refusal_response(LoginStatus::InitiatorError), None),
        };
        let response = self.response(&done.request, Some(Stage::FullFeaturePhase));
        let response = LoginResponse { tsih: place.tsih, window: place.window, ..response };
        let reply = self.transmit(response);
        let established = Established {
            identity: done.identity,
            tsih: place.tsih,
            cid: done.request.cid,
            session: place.joined.unwrap_or(done.session),
            connection: done.connection,
            role,
            cmd_sn: self.first.map_or(done.request.cmd_sn, |first| first.cmd_sn),
            stat_sn: self.stat_sn,
            replaced_exp_stat_sn: self.first.map_or(StatSn(0), |first| first.exp_stat_sn),
            window: place.window,
        };
        (Some(reply), Some(established))
    }

    /// The session parameters that a leading connection negotiated, once it asks to be admitted. The driver derives the
    /// session's window from them before it calls [`Self::admit`].
    #[must_use]
    pub fn session_parameters(&self) -> Option<&SessionParameters> {
        match &self.state {
            State::Complete(done) => Some(&done.session),
            State::Open | State::Over => None,
        }
    }

    /// The CmdSN of a new session's first command, once a request has been read. The driver creates the session with it
    /// before it calls [`Self::admit`].
    #[must_use]
    pub fn first_cmd_sn(&self) -> Option<CmdSn> {
        self.first.map(|first| first.cmd_sn)
    }

    fn respond(&mut self, request: &LoginRequest, next_stage: Option<Stage>) -> Transmit {
        let response = self.response(request, next_stage);
        self.transmit(response)
    }

    fn response(&self, request: &LoginRequest, next_stage: Option<Stage>) -> LoginResponse {
        // A leading login's CmdSN is the next that the target expects. For a connection that joins, the last response
        // tells the session's window; until then, this window admits nothing beyond the initiator's CmdSN.
        let window = Window { exp_cmd_sn: request.cmd_sn, max_cmd_sn: request.cmd_sn };
        LoginResponse {
            status: LoginStatus::Success,
            current_stage: self.stage,
            next_stage,
            continued: false,
            version_max: PROTOCOL_VERSION,
            version_active: PROTOCOL_VERSION,
            isid: request.isid,
            tsih: request.tsih,
            itt: request.itt,
            stat_sn: self.stat_sn,
            window,
            data_segment_bytes: 0,
        }
    }

    /// Completes a response with the next piece of text, and numbers it.
    fn transmit(&mut self, response: LoginResponse) -> Transmit {
        let piece = self.exchange.next_piece();
        let continued = self.exchange.is_sending();
        self.stat_sn = self.stat_sn.next();
        super::transmit_text(piece, |data_segment_bytes| {
            LoginResponse { continued, data_segment_bytes, ..response }.emit()
        })
    }

    /// The response that refuses a login; `None` before a first request could be read.
    fn refusal_response(&self, status: LoginStatus) -> Option<Transmit> {
        let first = self.first?;
        // A refusal with a success status would admit the initiator.
        let status = if status.is_success() { LoginStatus::TargetError } else { status };
        let header = LoginResponse { status, ..self.response(&first, None) }.emit();
        Some(Transmit { header, payload: Payload::None })
    }

    /// A response that redirects the initiator. It says nothing else, because nothing has been proven and nothing
    /// agreed would hold at the other address.
    fn redirection_response(&self, to: &Redirection) -> Option<Transmit> {
        let status = match to.permanent {
            true => LoginStatus::TargetMovedPermanently,
            false => LoginStatus::TargetMovedTemporarily,
        };
        let response = LoginResponse { status, ..self.response(&self.first?, None) };
        let mut text = TextWriter::new();
        text.push(Key::TargetAddress.name(), &to.address);
        let transmit = super::transmit_text(text.into_bytes(), |data_segment_bytes| {
            LoginResponse { data_segment_bytes, ..response }.emit()
        });
        Some(transmit)
    }
}

/// How many connections a session may have at a time. At error recovery level 2 there is room for one more, which comes
/// only to log out a dead one (RFC 7143 §6.3.4).
fn at_a_time(session: &SessionParameters) -> u16 {
    let least = if session.error_recovery_level > 1 { 2 } else { 1 };
    session.max_connections.max(least)
}

fn is_introduction(key: Key) -> bool {
    matches!(key, Key::SessionType | Key::InitiatorName | Key::TargetName)
}

/// A declared name, normalized for comparison (§4.2.7.2).
fn name(declared: &[Declared<'_>], key: Key) -> Result<Option<String>, Refusal> {
    let declared = declared.iter().find(|(declared, _)| *declared == key);
    let normalized = declared.map(|(_, name)| name::normalized(name).map_err(|_| Refusal::InvalidName(key)));
    normalized.transpose()
}

/// Checks the fields that "all Login Requests within a Login Phase MUST carry the same" (§11.12). CmdSN is not checked,
/// because a session's other connections go on while one joins.
fn check_same(first: &LoginRequest, request: &LoginRequest) -> Result<(), Refusal> {
    let same = [
        ("Initiator Task Tag", first.itt == request.itt),
        ("ISID", first.isid == request.isid),
        ("TSIH", first.tsih == request.tsih),
        ("CID", first.cid == request.cid),
        ("Version-min", first.version_min == request.version_min),
        ("Version-max", first.version_max == request.version_max),
    ];
    same.into_iter().find(|(_, same)| !same).map_or(Ok(()), |(field, _)| Err(Refusal::Changed(field)))
}
