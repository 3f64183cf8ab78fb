//! The login of a captured connection (RFC 7143 §6).

use crate::digests::Digests;
use pdu::text_keys::pairs;
use pdu::{Header, Isid, LoginRequest, LoginResponse, Stage, Tsih};

/// The key by which a connection of a split session says what it carries.
const LANE: &str = "X-io.github.ropewalk.Lane";

/// A session, by what its logins say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionName {
    initiator_name: Option<String>,
    isid: Isid,
    tsih: Tsih,
}

/// The captured part of a login.
#[derive(Debug, Default)]
pub(crate) struct Login {
    pub(crate) initiator_name: Option<String>,
    pub(crate) target_name: Option<String>,
    /// What it carries of a split session, if it has joined one.
    pub(crate) carries: Option<String>,
    isid: Option<Isid>,
    /// The session's, once the target has told it.
    tsih: Option<Tsih>,
    /// The digests so far; without a statement there are none.
    negotiated: Option<Digests>,
    /// Whether some of its text is missing.
    is_incomplete: bool,
}

impl Login {
    /// Processes the text of one of its PDUs, if it was captured.
    pub(crate) fn text(&mut self, text: Option<&[u8]>) {
        let Some(text) = text else {
            self.is_incomplete = true;
            return;
        };
        self.negotiated.get_or_insert(Digests::NONE).negotiate(text);
        for (key, value) in pairs(text).map_while(Result::ok) {
            match key {
                "InitiatorName" => self.initiator_name = Some(value.to_owned()),
                "TargetName" => self.target_name = Some(value.to_owned()),
                LANE => self.carries = Some(value.to_owned()),
                _ => {}
            }
        }
    }

    /// Processes the header of a request.
    pub(crate) fn request(&mut self, header: &Header) {
        self.isid = LoginRequest::parse(header).ok().map(|request| request.isid).or(self.isid);
    }

    /// Processes the header of a response.
    pub(crate) fn response(&mut self, header: &Header) {
        let told = LoginResponse::parse(header).ok().map(|response| response.tsih);
        self.tsih = told.filter(|tsih| *tsih != Tsih::NEW_SESSION).or(self.tsih);
    }

    /// The connection's session, if its login was captured to the end.
    pub(crate) fn session(&self) -> Option<SessionName> {
        Some(SessionName { initiator_name: self.initiator_name.clone(), isid: self.isid?, tsih: self.tsih? })
    }

    /// The digests from now on, if `response` ends the login: the negotiated ones, or else the assumed ones.
    pub(crate) fn digests_after(&self, response: &Header, assumed: Digests) -> Option<Digests> {
        let response = LoginResponse::parse(response).ok()?;
        let is_last = response.status.is_success() && response.next_stage == Some(Stage::FullFeaturePhase);
        let negotiated = if self.is_incomplete { assumed } else { self.negotiated.unwrap_or(assumed) };
        is_last.then_some(negotiated)
    }
}
