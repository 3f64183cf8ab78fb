//! Two logins that talk to each other, and each of them alone with a peer that says what a test wants.

use pdu::{
    Cid, CmdSn, Header, Isid, Itt, LoginRequest, LoginResponse, LoginStatus, Stage, StatSn, Tsih, Window,
};
use ropewalk_session as session;
use session::chap::{Account, Credentials, Secret};
use session::login::{initiator, target};
use session::parameters::{Established, LaneRole, Offer};
use session::seam::{Payload, Transmit};
use std::sync::Arc;

pub const INITIATOR: &str = "iqn.2026-11.org.example:initiator";
pub const TARGET: &str = "iqn.2026-11.org.example:disk";
pub const ISID: Isid = Isid([0x80, 1, 2, 3, 0, 4]);
pub const PORTAL_GROUP: u16 = 3;
/// Each login of more than one response goes on beyond the wrap.
pub const FIRST_STAT_SN: StatSn = StatSn(u32::MAX);

/// A configuration with one target.
#[derive(Clone, Debug, Default)]
pub struct Configured {
    pub credentials: Option<Credentials>,
    pub redirection: Option<target::Redirection>,
    pub alias: Option<String>,
    pub closed: bool,
}

impl target::Directory for Configured {
    fn access(
        &self,
        _initiator_name: &str,
        target_name: Option<&str>,
    ) -> Result<target::Access, target::Denial> {
        match (target_name, &self.redirection) {
            (Some(name), _) if name != TARGET => Err(LoginStatus::NotFound.into()),
            (_, Some(redirection)) => Err(target::Denial::Redirected(redirection.clone())),
            _ if self.closed => Err(LoginStatus::AuthorizationFailure.into()),
            _ => {
                let authentication = self.credentials.clone().map(|credentials| Arc::new(credentials.into()));
                Ok(target::Access { authentication, alias: self.alias.clone() })
            }
        }
    }
}

pub fn account(name: &str, secret: &str) -> Account {
    Account::new(name, Secret::new(secret.as_bytes()).unwrap()).unwrap()
}

pub fn one_way() -> Credentials {
    Credentials::one_way(account("alice", "what alice knows"))
}

pub fn mutual() -> Credentials {
    Credentials::mutual(account("alice", "what alice knows"), account("disk", "what the disk knows")).unwrap()
}

pub fn config() -> initiator::Config {
    initiator::Config {
        initiator_name: INITIATOR.into(),
        initiator_alias: None,
        target_name: Some(TARGET.into()),
        isid: ISID,
        cid: Cid(7),
        joining: None,
        role: LaneRole::Whole,
        portal_group_tag: None,
        cmd_sn: CmdSn(100),
        offer: Offer::default(),
        credentials: None,
        entropy: *b"the initiator's entropy, 33 bytes",
    }
}

pub fn target_login(offer: Offer) -> target::Login {
    target::Login::new(PORTAL_GROUP, offer, FIRST_STAT_SN, b"the target's entropy of 33 bytes!")
}

pub fn place(tsih: u16) -> target::Place {
    target::Place {
        tsih: Tsih(tsih),
        window: Window { exp_cmd_sn: CmdSn(100), max_cmd_sn: CmdSn(163) },
        joined: None,
    }
}

/// How a login between two ends came out.
#[derive(Debug)]
pub struct Outcome {
    pub initiator: Result<Established, initiator::Failure>,
    pub target: Result<Established, Option<target::Refusal>>,
    pub requests: usize,
}

impl Outcome {
    /// What both agree on.
    pub fn agreed(self) -> (Established, Established) {
        (self.initiator.unwrap(), self.target.unwrap())
    }
}

pub fn data(transmit: &Transmit) -> &[u8] {
    match &transmit.payload {
        Payload::None => &[],
        Payload::Inline(data) => data,
        Payload::Buffer(_) => panic!("a login has no buffers"),
    }
}

/// Lets both log in, with `decision` at the end.
pub fn log_in(
    config: initiator::Config,
    offer: Offer,
    directory: &Configured,
    decision: Result<target::Place, LoginStatus>,
) -> Outcome {
    let mut initiator = initiator::Login::new(config);
    let mut target = target_login(offer);
    let mut request = initiator.start();
    for requests in 1.. {
        let mut established = Err(None);
        let reply = match target.receive(&request.header, data(&request), directory) {
            target::Progress::Reply(reply) => reply,
            target::Progress::Admit(_) => {
                let (reply, admitted) = target.admit(decision);
                established = admitted.ok_or(None);
                reply.unwrap()
            }
            target::Progress::Refused { reply, reason } => {
                established = Err(Some(reason));
                reply.unwrap()
            }
        };
        request = match initiator.receive(&reply.header, data(&reply)) {
            initiator::Progress::Send(request) => request,
            initiator::Progress::Established(ours) => {
                return Outcome { initiator: Ok(ours), target: established, requests };
            }
            initiator::Progress::Refused(failure) => {
                return Outcome { initiator: Err(failure), target: established, requests };
            }
            initiator::Progress::Redirected { address, .. } => panic!("redirected to {address}"),
        };
    }
    unreachable!()
}

/// A target's login alone with an initiator that a test plays.
pub struct Alone {
    pub login: target::Login,
    pub directory: Configured,
    pub request: LoginRequest,
}

pub const NAMES: &str =
    "InitiatorName=iqn.2026-11.org.example:initiator\0TargetName=iqn.2026-11.org.example:disk\0";

impl Alone {
    pub fn new() -> Self {
        Self::with(Configured::default())
    }

    pub fn with(directory: Configured) -> Self {
        let request = LoginRequest {
            current_stage: Stage::OperationalNegotiation,
            next_stage: None,
            continued: false,
            version_max: 0,
            version_min: 0,
            isid: ISID,
            tsih: Tsih::NEW_SESSION,
            itt: Itt(1),
            cid: Cid(7),
            cmd_sn: CmdSn(100),
            exp_stat_sn: StatSn(0),
            data_segment_bytes: 0,
        };
        Self { login: target_login(Offer::default()), directory, request }
    }

    pub fn security() -> Self {
        let mut alone = Self::with(Configured { credentials: Some(one_way()), ..Configured::default() });
        alone.request.current_stage = Stage::SecurityNegotiation;
        alone
    }

    pub fn send(&mut self, text: &[u8]) -> target::Progress {
        let data_segment_bytes = u32::try_from(text.len()).unwrap();
        let header = LoginRequest { data_segment_bytes, ..self.request }.emit();
        self.login.receive(&header, text, &self.directory)
    }

    /// Sends text, and expects an answer that goes on.
    pub fn exchange(&mut self, text: &str) -> (LoginResponse, String) {
        match self.send(text.as_bytes()) {
            target::Progress::Reply(reply) => read(&reply),
            other => panic!("{other:?}"),
        }
    }

    /// Sends text, and expects to be refused.
    pub fn refused(&mut self, text: &str) -> (Option<LoginStatus>, target::Refusal) {
        match self.send(text.as_bytes()) {
            target::Progress::Refused { reply, reason } => (reply.map(|reply| read(&reply).0.status), reason),
            other => panic!("{other:?}"),
        }
    }

    pub fn header(&mut self, header: &Header) -> target::Progress {
        self.login.receive(header, &[], &self.directory)
    }
}

pub fn read(transmit: &Transmit) -> (LoginResponse, String) {
    let response = LoginResponse::parse(&transmit.header).unwrap();
    assert_eq!(response.data_segment_bytes as usize, data(transmit).len());
    (response, String::from_utf8(data(transmit).to_vec()).unwrap())
}

/// The value of a key in a text.
pub fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_terminator('\0').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
}

/// An initiator's login alone with a target that a test plays.
pub struct Lonely {
    pub login: initiator::Login,
    pub response: LoginResponse,
    pub request: LoginRequest,
    pub text: String,
}

impl Lonely {
    pub fn new(config: initiator::Config) -> Self {
        let mut login = initiator::Login::new(config);
        let first = login.start();
        let request = LoginRequest::parse(&first.header).unwrap();
        let response = LoginResponse {
            status: LoginStatus::Success,
            current_stage: request.current_stage,
            next_stage: None,
            continued: false,
            version_max: 0,
            version_active: 0,
            isid: request.isid,
            tsih: request.tsih,
            itt: request.itt,
            stat_sn: StatSn(50),
            window: Window { exp_cmd_sn: CmdSn(100), max_cmd_sn: CmdSn(131) },
            data_segment_bytes: 0,
        };
        let text = String::from_utf8(data(&first).to_vec()).unwrap();
        Self { login, response, request, text }
    }

    pub fn answer(&mut self, text: &str) -> initiator::Progress {
        let data_segment_bytes = u32::try_from(text.len()).unwrap();
        let header = LoginResponse { data_segment_bytes, ..self.response }.emit();
        let progress = self.login.receive(&header, text.as_bytes());
        if let initiator::Progress::Send(request) = &progress {
            self.request = LoginRequest::parse(&request.header).unwrap();
            self.text = String::from_utf8(data(request).to_vec()).unwrap();
            self.response.current_stage = self.request.current_stage;
        }
        progress
    }

    pub fn fails(&mut self, text: &str) -> initiator::Failure {
        match self.answer(text) {
            initiator::Progress::Refused(failure) => failure,
            other => panic!("{other:?}"),
        }
    }
}
