//! The initiator's side of a login.

mod config;
mod failure;
mod security;

pub use config::{Config, Joining};
pub use failure::{Failure, Remedy};

use super::exchange::{Exchange, Incoming};
use super::is_target_address;
use crate::chap::Algorithm;
use crate::negotiation::{Key, Negotiation, Role};
use crate::parameters::{Established, Identity, LaneRole, SessionType};
use crate::seam::Transmit;
use pdu::{
    Header, Itt, LoginRequest, LoginResponse, LoginStatus, Opcode, PROTOCOL_VERSION, Stage, StatSn, Tsih,
};
use pdu::{TextWriter, text_keys, text_value};
use security::Security;

/// What a driver does next with a connection in login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Send this PDU, then wait for the next one.
    Send(Transmit),
    /// Login is done.
    Established(Established),
    /// The target is elsewhere: close the connection and try there.
    Redirected {
        /// `host[:port]`, the host a name, an IPv4 address, or an IPv6 address in brackets (RFC 7143 §13.8). The target
        /// that sent it may not have authenticated itself.
        address: String,
        /// Whether the target moved permanently.
        permanent: bool,
    },
    /// The login failed: close the connection.
    Refused(Failure),
}

/// The task tag of every Login Request. It differs from the tags of the session's tasks, beside which an added
/// connection logs in.
const LOGIN_TASK: Itt = Itt(0xffff_fffe);

/// One connection's login.
#[derive(Clone, Debug)]
pub struct Login {
    config: Config,
    negotiation: Negotiation,
    exchange: Exchange,
    security: Security,
    stage: Stage,
    /// The next stage that the unanswered request asks for (T bit and NSG), if it does.
    asked: Option<Stage>,
    exp_stat_sn: StatSn,
    portal_group_tag: Option<u16>,
    target_alias: Option<String>,
    /// The login was established, refused or redirected, and takes no further PDU.
    is_over: bool,
}

impl Login {
    /// A login over a new connection.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let session_type =
            if config.target_name.is_some() { SessionType::Normal } else { SessionType::Discovery };
        Self {
            negotiation: Negotiation::new(
                Role::Initiator,
                config.joining.is_none(),
                session_type,
                config.offer,
            ),
            exchange: Exchange::new(),
            security: Security::new(config.credentials.clone(), &config.entropy),
            // Without credentials, the security stage is skipped, which saves a round trip (§6.3.1).
            stage: match config.credentials {
                Some(_) => Stage::SecurityNegotiation,
                None => Stage::OperationalNegotiation,
            },
            asked: None,
            exp_stat_sn: config.joining.map_or(StatSn(0), |joining| joining.replaced_exp_stat_sn),
            portal_group_tag: None,
            target_alias: None,
            is_over: false,
            config,
        }
    }

    /// The first PDU to send.
    pub fn start(&mut self) -> Transmit {
        let mut text = TextWriter::new();
        text.push(Key::InitiatorName.name(), &self.config.initiator_name);
        if let Some(target_name) = &self.config.target_name {
            text.push(Key::TargetName.name(), target_name);
        }
        if self.config.joining.is_none() {
            let session_type = if self.config.target_name.is_some() { "Normal" } else { "Discovery" };
            text.push(Key::SessionType.name(), session_type);
        }
        if let Some(alias) = &self.config.initiator_alias {
            text.push(Key::InitiatorAlias.name(), alias);
            self.negotiation.note_sent(Key::InitiatorAlias);
        }
        if self.config.joining.is_some() && self.config.role != LaneRole::Whole {
            text.push(Key::Lane.name(), self.config.role.name());
            self.negotiation.note_sent(Key::Lane);
        }
        self.begin_stage(&mut text);
        self.exchange.send(text);
        self.request()
    }

    /// The target's description for people, if it told one.
    #[must_use]
    pub fn target_alias(&self) -> Option<&str> {
        self.target_alias.as_deref()
    }

    /// The CHAP algorithm that the target chose, if it has chosen one. It may be the cause of a later refusal.
    #[must_use]
    pub fn chap_algorithm(&self) -> Option<Algorithm> {
        self.security.algorithm()
    }

    /// Takes the next PDU.
    pub fn receive(&mut self, header: &Header, data: &[u8]) -> Progress {
        if self.is_over {
            return Progress::Refused(Failure::Over);
        }
        let progress = self.step(header, data).unwrap_or_else(Progress::Refused);
        self.is_over = !matches!(progress, Progress::Send(_));
        progress
    }

    fn step(&mut self, header: &Header, data: &[u8]) -> Result<Progress, Failure> {
        let response = self.parse(header)?;
        if !response.status.is_success() {
            return redirection(response.status, data).ok_or(Failure::Refused(response.status));
        }
        match self.exchange.receive(data, response.continued)? {
            Incoming::Piece => {
                self.asked = None;
                Ok(Progress::Send(self.transmit(None)))
            }
            Incoming::GoOn if response.next_stage.is_some() => Err(Failure::Stage),
            Incoming::GoOn => Ok(Progress::Send(self.request())),
            Incoming::Text(text) => {
                let mut answers = TextWriter::new();
                self.take_text(&text, &mut answers)?;
                self.advance(&response, answers)
            }
        }
    }

    /// Parses a header, and checks that it answers the outstanding request (§11.13).
    fn parse(&mut self, header: &Header) -> Result<LoginResponse, Failure> {
        if header.opcode() != Ok(Opcode::LoginResponse) {
            return Err(Failure::NotALogin);
        }
        let response = LoginResponse::parse(header)?;
        if response.itt != LOGIN_TASK {
            return Err(Failure::Tag);
        }
        if !response.status.is_success() {
            return Ok(response);
        }
        if response.version_active != PROTOCOL_VERSION {
            return Err(Failure::Version(response.version_active));
        }
        if response.current_stage != self.stage {
            return Err(Failure::Stage);
        }
        self.exp_stat_sn = response.stat_sn.next();
        Ok(response)
    }

    fn take_text(&mut self, text: &[u8], answers: &mut TextWriter) -> Result<(), Failure> {
        let pairs: Vec<_> = text_keys::pairs(text).collect::<Result<_, _>>()?;
        let declared = self.negotiation.receive(self.stage, &pairs, answers)?;
        for &(key, value) in &declared {
            match key {
                Key::TargetPortalGroupTag => self.take_portal_group_tag(portal_group_tag(value)?)?,
                Key::TargetAlias => self.target_alias = Some(value.into()),
                _ => {}
            }
        }
        if self.stage == Stage::SecurityNegotiation {
            self.security.receive(&declared, &mut self.negotiation, answers)?;
        } else {
            security::check_late_method(&declared)?;
        }
        Ok(())
    }

    /// Takes the tag of the portal group that serves the login (§6.3), which tells whether it is the intended one.
    fn take_portal_group_tag(&mut self, found: u16) -> Result<(), Failure> {
        self.portal_group_tag = Some(found);
        match self.config.portal_group_tag {
            Some(wanted) if wanted != found => Err(Failure::OtherPortalGroup { wanted, found }),
            _ => Ok(()),
        }
    }

    fn advance(&mut self, response: &LoginResponse, mut answers: TextWriter) -> Result<Progress, Failure> {
        match response.next_stage {
            None => {}
            next if next != self.asked || !asks_nothing(&answers) => return Err(Failure::Stage),
            Some(Stage::FullFeaturePhase) => return self.establish(response).map(Progress::Established),
            Some(next) => {
                self.security.check_proven()?;
                self.stage = next;
                self.begin_stage(&mut answers);
            }
        }
        self.exchange.send(answers);
        Ok(Progress::Send(self.request()))
    }

    fn begin_stage(&mut self, text: &mut TextWriter) {
        if self.stage == Stage::SecurityNegotiation {
            self.security.propose(&mut self.negotiation, text);
        } else {
            self.negotiation.declare(text);
            self.negotiation.propose(text);
        }
    }

    /// The next request. It asks for the next stage if it carries the last piece of this side's text.
    fn request(&mut self) -> Transmit {
        let next = match self.stage {
            Stage::SecurityNegotiation if self.security.expects_more() => None,
            Stage::SecurityNegotiation => Some(Stage::OperationalNegotiation),
            _ => Some(Stage::FullFeaturePhase),
        };
        self.asked = next.filter(|_| self.exchange.is_last_piece());
        self.transmit(self.asked)
    }

    fn transmit(&mut self, next_stage: Option<Stage>) -> Transmit {
        let piece = self.exchange.next_piece();
        let request = LoginRequest {
            current_stage: self.stage,
            next_stage,
            continued: self.exchange.is_sending(),
            version_max: PROTOCOL_VERSION,
            version_min: PROTOCOL_VERSION,
            isid: self.config.isid,
            tsih: self.config.joining.map_or(Tsih::NEW_SESSION, |joining| joining.tsih),
            itt: LOGIN_TASK,
            cid: self.config.cid,
            cmd_sn: self.config.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            data_segment_bytes: 0,
        };
        super::transmit_text(piece, |data_segment_bytes| {
            LoginRequest { data_segment_bytes, ..request }.emit()
        })
    }

    fn establish(&mut self, response: &LoginResponse) -> Result<Established, Failure> {
        match self.config.joining {
            // Some targets answer success and make a new session for every connection.
            Some(joining) if joining.tsih != response.tsih => {
                return Err(Failure::NotJoined { wanted: joining.tsih, found: response.tsih });
            }
            None if response.tsih == Tsih::NEW_SESSION => return Err(Failure::NoHandle),
            _ => {}
        }
        let (session, connection) = self.negotiation.finish()?;
        let identity = Identity {
            initiator_name: self.config.initiator_name.clone(),
            isid: self.config.isid,
            target_name: self.config.target_name.clone().unwrap_or_default(),
            portal_group_tag: self.portal_group_tag.unwrap_or_default(),
        };
        Ok(Established {
            identity,
            tsih: response.tsih,
            cid: self.config.cid,
            session: self.config.joining.map_or(session, |joining| joining.session),
            connection,
            role: self.config.joining.map_or(session.split.roles()[0], |_| self.config.role),
            cmd_sn: self.config.cmd_sn,
            stat_sn: self.exp_stat_sn,
            replaced_exp_stat_sn: self
                .config
                .joining
                .map_or(StatSn(0), |joining| joining.replaced_exp_stat_sn),
            window: response.window,
        })
    }
}

/// Whether a response that ends a stage demands no answer, as §11.13.6 requires. It may declare extensions that this
/// side does not understand; these need no answer.
fn asks_nothing(answers: &TextWriter) -> bool {
    text_keys::pairs(answers.bytes()).flatten().all(|(_, answer)| answer == text_value::NOT_UNDERSTOOD)
}

/// Parses "TargetPortalGroupTag=<16-bit-binary-value>" (§13.9), which targets write as a number.
fn portal_group_tag(value: &str) -> Result<u16, Failure> {
    let tag = text_value::numerical(value, 0..=u16::MAX.into()).map_err(|_| Failure::PortalGroupTag)?;
    u16::try_from(tag).map_err(|_| Failure::PortalGroupTag)
}

/// The address to which a refused login redirects (§11.13.5).
fn redirection(status: LoginStatus, data: &[u8]) -> Option<Progress> {
    let permanent = match status {
        LoginStatus::TargetMovedTemporarily => false,
        LoginStatus::TargetMovedPermanently => true,
        _ => return None,
    };
    let (_, address) =
        text_keys::pairs(data).flatten().find(|(name, _)| *name == Key::TargetAddress.name())?;
    is_target_address(address).then(|| Progress::Redirected { address: address.into(), permanent })
}
