//! The first bytes of a connection: what anybody may send.

use crate::stream::split;
use pdu::{CmdSn, LoginStatus, StatSn, Tsih, Window};
use session::chap::{Account, Authentication, Credentials, Secret};
use session::login::DATA_SEGMENT_BYTES_MAX;
use session::login::target::{Access, Denial, Directory, Login, Place, Progress, Redirection};
use session::parameters::Offer;
use std::sync::Arc;

/// A configuration that lets everybody in, but where the target's name says otherwise.
struct Configuration {
    /// What initiators must prove, if anything.
    authentication: Option<Arc<Authentication>>,
}

const SECRET: &[u8] = b"the initiator's secret";
const OWN_SECRET: &[u8] = b"the target's own secret";

impl Configuration {
    fn new(proof: bool) -> Self {
        let account = |secret| Account::new("tester", Secret::new(secret).ok()?).ok();
        let mutual = || Credentials::mutual(account(SECRET)?, account(OWN_SECRET)?).ok();
        Self { authentication: proof.then(mutual).flatten().map(|both| Arc::new(both.into())) }
    }
}

impl Directory for Configuration {
    fn access(&self, _initiator_name: &str, target_name: Option<&str>) -> Result<Access, Denial> {
        match target_name {
            Some(name) if name.ends_with("unknown") => Err(LoginStatus::NotFound.into()),
            Some(name) if name.ends_with("moved") => Err(Denial::Redirected(Redirection {
                address: "[2001:db8::1]:3260".to_owned(),
                permanent: true,
            })),
            _ => Ok(Access { authentication: self.authentication.clone(), alias: Some("a disk".to_owned()) }),
        }
    }
}

/// A stream of bytes from an initiator that has not logged in. The first byte says whether it must prove who it is.
///
/// # Panics
/// If the login does, or agrees on more than was offered.
pub fn pdu_stream_before_login(input: &[u8]) {
    let Some((&settings, mut stream)) = input.split_first() else { return };
    let directory = Configuration::new(settings & 1 != 0);
    let mut login = Login::new(1, Offer::default(), StatSn(0), &[7; session::chap::ENTROPY_BYTES]);
    while let Some((piece, rest)) = split(stream) {
        stream = rest;
        // As the connection does before it reads a data segment.
        let Some((header, data)) = piece.whole() else { return };
        if header.ahs_bytes() > 0 || header.data_segment_bytes() > DATA_SEGMENT_BYTES_MAX {
            return;
        }
        match login.receive(&header, data, &directory) {
            Progress::Reply(reply) => assert!(reply.payload.bytes() <= DATA_SEGMENT_BYTES_MAX as usize),
            Progress::Admit(_) => return admit(login),
            Progress::Refused { .. } => return,
        }
    }
}

/// Whatever was agreed on must be within what was offered.
fn admit(mut login: Login) {
    let window = Window { exp_cmd_sn: CmdSn(1), max_cmd_sn: CmdSn(32) };
    let (_, established) = login.admit(Ok(Place { tsih: Tsih(1), window, joined: None }));
    let Some(established) = established else { return };
    let offer = Offer::default();
    assert!(established.session.max_connections <= offer.max_connections);
    assert!(established.session.first_burst_bytes <= offer.first_burst_bytes);
    assert!(established.session.max_burst_bytes <= offer.max_burst_bytes);
    assert!(established.session.error_recovery_level <= offer.error_recovery_level);
    assert!(established.connection.receive_segment_bytes_max <= offer.receive_segment_bytes_max);
}
