//! One TCP connection, from nothing to the end of its login.

use crate::{Config, Error, LoginError, NetworkError, Portal};
use pdu::{Cid, CmdSn, Isid};
use session::chap::Entropy;
use session::login::initiator::{Joining, Login, Progress};
use session::login::{DATA_SEGMENT_BYTES_MAX, initiator};
use session::parameters::{Established, Offer};
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use transport::{SocketOptions, read_pdu, write_pdu};

/// A login from portal to portal is followed this often. Arrays use one step; more are a loop.
const REDIRECTIONS_MAX: usize = 4;

/// What distinguishes one login of an initiator from its others.
#[derive(Clone, Debug)]
pub(crate) struct Applicant {
    /// `None` for discovery.
    pub target_name: Option<String>,
    pub isid: Isid,
    pub cid: Cid,
    pub joining: Option<Joining>,
    pub cmd_sn: CmdSn,
    pub offer: Offer,
}

/// A connection whose login is done.
pub(crate) struct Opened {
    pub stream: TcpStream,
    pub established: Established,
    pub peer: SocketAddr,
    pub congestion: Option<String>,
}

/// Connects and logs in, where the target redirects to if it does.
pub(crate) async fn open(config: &Config, portal: &Portal, applicant: &Applicant) -> Result<Opened, Error> {
    let mut portal = portal.clone();
    for _ in 0..=REDIRECTIONS_MAX {
        let attempt = tokio::time::timeout(config.login_timeout, attempt(config, &portal, applicant));
        let answer =
            attempt.await.map_err(|_| NetworkError::Timeout { portal: portal.clone(), during: "login" })?;
        match answer? {
            Answer::Opened(opened) => return Ok(*opened),
            Answer::Redirected(address) => {
                tracing::info!(from = %portal, to = address, "the target redirects the login");
                let unknown =
                    |_| LoginError::Redirection { portal: portal.clone(), address: address.clone() };
                portal = address.parse().map_err(unknown)?;
            }
        }
    }
    let address = portal.to_string();
    Err(LoginError::Redirection { portal, address }.into())
}

enum Answer {
    Opened(Box<Opened>),
    Redirected(String),
}

async fn attempt(config: &Config, portal: &Portal, applicant: &Applicant) -> Result<Answer, Error> {
    let mut stream = TcpStream::connect((portal.host.as_str(), portal.port))
        .await
        .map_err(|source| NetworkError::Connect { portal: portal.clone(), source })?;
    config
        .socket
        .apply(&stream)
        .map_err(|source| NetworkError::SocketOptions { portal: portal.clone(), source })?;
    let broken = |source| NetworkError::Broken { portal: portal.clone(), during: "login", source };
    let mut login = Login::new(login_config(config, applicant).map_err(broken)?);
    let mut request = login.start();
    loop {
        write_pdu(&mut stream, &request).await.map_err(broken)?;
        let (header, data) = read_pdu(&mut stream, DATA_SEGMENT_BYTES_MAX).await.map_err(broken)?;
        match login.receive(&header, &data) {
            Progress::Send(next) => request = next,
            Progress::Redirected { address, .. } => return Ok(Answer::Redirected(address)),
            Progress::Refused(failure) => {
                let target = applicant.target_name.clone().unwrap_or_else(|| "discovery".to_owned());
                return Err(LoginError::Failed { target, portal: portal.clone(), failure }.into());
            }
            Progress::Established(established) => {
                let peer = stream.peer_addr().map_err(broken)?;
                let congestion = SocketOptions::congestion_of(&stream).ok();
                return Ok(Answer::Opened(Box::new(Opened { stream, established, peer, congestion })));
            }
        }
    }
}

fn login_config(config: &Config, applicant: &Applicant) -> io::Result<initiator::Config> {
    let mut entropy = Entropy::default();
    getrandom::fill(&mut entropy).map_err(io::Error::other)?;
    Ok(initiator::Config {
        initiator_name: config.initiator_name.clone(),
        initiator_alias: None,
        target_name: applicant.target_name.clone(),
        isid: applicant.isid,
        cid: applicant.cid,
        joining: applicant.joining,
        cmd_sn: applicant.cmd_sn,
        offer: applicant.offer,
        credentials: config.credentials.clone(),
        entropy,
    })
}
