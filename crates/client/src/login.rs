//! One connection, from its TCP connect to the end of its login (RFC 7143 §6.3).

use crate::host;
use crate::{Config, Dialed, Environment, Error, LoginError, NetworkError, Portal, UsageError};
use framing::{Congestion, ConnectionObserver, SocketOptions, Wire, group_of, read_pdu, write_pdu};
use pdu::{Cid, CmdSn, Isid, LoginStatusClass};
use session::chap::{Algorithm, Credentials, ENTROPY_BYTES};
use session::login::initiator::{Failure, Joining, Login, Progress};
use session::login::{DATA_SEGMENT_BYTES_MAX, initiator};
use session::parameters::{Established, LaneRole, Offer};
use std::net::SocketAddr;

/// Redirections followed in one login. Arrays use one; more indicate a loop.
const REDIRECTIONS_MAX: usize = 4;

/// The parameters in which the logins of one initiator differ.
#[derive(Clone, Debug)]
pub(crate) struct Applicant {
    /// Where it logs in, unless it is redirected.
    pub portal: Portal,
    /// The portal group that the portal must be of, if only one is right.
    pub portal_group_tag: Option<u16>,
    /// `None` for discovery.
    pub target_name: Option<String>,
    pub isid: Isid,
    pub cid: Cid,
    pub joining: Option<Joining>,
    /// What it is to carry in the session that it joins.
    pub role: LaneRole,
    pub cmd_sn: CmdSn,
    pub offer: Offer,
}

/// A connection after its login.
pub(crate) struct Opened {
    /// The portal of its [`Applicant`].
    pub portal: Portal,
    pub wire: Box<dyn Wire + Send>,
    pub established: Established,
    pub peer: SocketAddr,
    /// Its options, with the congestion control that it has if none was chosen.
    pub socket: SocketOptions,
    /// The congestion control in force.
    pub congestion: Option<String>,
    pub observer: Option<Box<dyn ConnectionObserver>>,
    /// Random bits that say where the tags of a session begin which this login leads.
    pub tags_from: u32,
}

/// One login to be made: in this environment, by this configuration, as this applicant.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    environment: &'a Environment,
    config: &'a Config,
    applicant: &'a Applicant,
}

/// Connects, logs in, and follows redirections. Every portal is a separate peer: the login starts anew there, and no
/// earlier statement or proof counts.
pub(crate) async fn open(
    environment: &Environment,
    config: &Config,
    applicant: &Applicant,
) -> Result<Opened, Error> {
    session::name::normalized(&config.initiator_name).map_err(UsageError::InitiatorName)?;
    let attempt = Attempt { environment, config, applicant };
    let mut visited = Vec::new();
    let mut portal = applicant.portal.clone();
    loop {
        match attempt.open_at(&portal).await? {
            Answer::Opened(opened) => return Ok(*opened),
            Answer::Redirected(address) => {
                let refuse = |problem| LoginError::Redirection {
                    portal: portal.clone(),
                    address: address.clone(),
                    problem,
                };
                let next = portal_of(&address).ok_or_else(|| refuse("which is no address"))?;
                if next == portal || visited.contains(&next) {
                    return Err(refuse("where it has come from").into());
                }
                if visited.len() == REDIRECTIONS_MAX {
                    return Err(refuse("after too many other places").into());
                }
                tracing::info!(from = %portal, to = %next, "the target redirects the login");
                visited.push(std::mem::replace(&mut portal, next));
            }
        }
    }
}

/// Parses a redirection's address. The standard forbids a portal group tag there (§11.13.5); some targets send one.
fn portal_of(address: &str) -> Option<Portal> {
    address.split_once(',').map_or(address, |(address, _)| address).parse().ok()
}

/// The result of a login at one portal.
enum Answer {
    Opened(Box<Opened>),
    Redirected(String),
}

/// A portal chose an algorithm and then refused the response computed with it.
struct Misunderstanding {
    failure: Error,
    /// The credentials that remain to offer.
    credentials: Credentials,
}

/// The credentials without SHA-256, for a target that refused a SHA-256 response.
fn without_sha256(credentials: Option<&Credentials>, login: &Login, failure: Failure) -> Option<Credentials> {
    let misunderstood = login.chap_algorithm() == Some(Algorithm::Sha256)
        && matches!(failure, Failure::Refused(status) if status.class() == LoginStatusClass::InitiatorError);
    let credentials = credentials.filter(|_| misunderstood)?;
    let rest = credentials.algorithms().without(Algorithm::Sha256)?;
    Some(credentials.clone().offering(rest))
}

impl Attempt<'_> {
    /// Logs in at one portal. If a target chose SHA-256 and refused the response, the login is repeated once without
    /// SHA-256, because tgt means SHA-1 by that number. This weakens nothing: a target may always choose the weakest
    /// algorithm.
    async fn open_at(self, portal: &Portal) -> Result<Answer, Error> {
        match self.log_in_in_time(portal, self.config.credentials.clone()).await? {
            Ok(answer) => Ok(answer),
            Err(Misunderstanding { credentials, .. }) => {
                tracing::debug!(%portal, "CHAP with SHA-256 was refused: trying without");
                let answer = self.log_in_in_time(portal, Some(credentials)).await?;
                answer.map_err(|misunderstanding| misunderstanding.failure)
            }
        }
    }

    async fn log_in_in_time(
        self,
        portal: &Portal,
        credentials: Option<Credentials>,
    ) -> Result<Result<Answer, Misunderstanding>, Error> {
        let login = self.log_in(portal, credentials);
        let answer = self.environment.within(self.config.login_timeout, login).await;
        answer.ok_or_else(|| NetworkError::Timeout { portal: portal.clone(), during: "login" })?
    }

    async fn log_in(
        self,
        portal: &Portal,
        credentials: Option<Credentials>,
    ) -> Result<Result<Answer, Misunderstanding>, Error> {
        let Self { environment, config, applicant } = self;
        let Dialed { mut wire, peer, observe } = environment.network.dial(portal, &config.socket).await?;
        let broken = |source| NetworkError::Broken { portal: portal.clone(), during: "login", source };
        let mut login = Login::new(self.login_config(credentials.clone())?);
        let mut request = login.start();
        loop {
            write_pdu(&mut wire, &request).await.map_err(broken)?;
            let (header, data) = read_pdu(&mut wire, DATA_SEGMENT_BYTES_MAX).await.map_err(broken)?;
            match login.receive(&header, &data) {
                Progress::Send(next) => request = next,
                Progress::Redirected { address, .. } => return Ok(Ok(Answer::Redirected(address))),
                Progress::Refused(failure) => {
                    let target = applicant.target_name.clone().unwrap_or_else(|| "discovery".to_owned());
                    let credentials = without_sha256(credentials.as_ref(), &login, failure);
                    let failure = LoginError::Failed { target, portal: portal.clone(), failure }.into();
                    return match credentials {
                        Some(credentials) => Ok(Err(Misunderstanding { failure, credentials })),
                        None => Err(failure),
                    };
                }
                Progress::Established(established) => {
                    let socket =
                        SocketOptions { group: group_of(applicant.isid, peer), ..config.socket.clone() };
                    let refused = |source| NetworkError::SocketOptions { portal: portal.clone(), source };
                    let congestion = wire.apply(&socket).map_err(refused)?.congestion;
                    let system = congestion.clone().map(Congestion::named);
                    return Ok(Ok(Answer::Opened(Box::new(Opened {
                        portal: applicant.portal.clone(),
                        wire,
                        peer,
                        socket: SocketOptions { congestion: socket.congestion.or(system), ..socket },
                        congestion,
                        observer: observe.map(|observe| observe(&established)),
                        established,
                        tags_from: u32::from_be_bytes(host::random(&*environment.host)?),
                    }))));
                }
            }
        }
    }

    fn login_config(self, credentials: Option<Credentials>) -> Result<initiator::Config, NetworkError> {
        let Self { environment, config, applicant } = self;
        let entropy: [u8; ENTROPY_BYTES] = host::random(&*environment.host)?;
        Ok(initiator::Config {
            initiator_name: config.initiator_name.clone(),
            initiator_alias: None,
            target_name: applicant.target_name.clone(),
            isid: applicant.isid,
            cid: applicant.cid,
            joining: applicant.joining,
            role: applicant.role,
            portal_group_tag: applicant.portal_group_tag,
            cmd_sn: applicant.cmd_sn,
            offer: applicant.offer,
            credentials,
            entropy,
        })
    }
}
