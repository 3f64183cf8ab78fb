//! The login of a captured connection (RFC 7143 §6).

use crate::digests::Digests;
use pdu::text_keys::pairs;
use pdu::{Header, LoginResponse, Stage};

/// The captured part of a login.
#[derive(Debug, Default)]
pub(crate) struct Login {
    pub(crate) initiator_name: Option<String>,
    pub(crate) target_name: Option<String>,
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
                _ => {}
            }
        }
    }

    /// The digests from now on, if `response` ends the login: the negotiated ones, or else the assumed ones.
    pub(crate) fn digests_after(&self, response: &Header, assumed: Digests) -> Option<Digests> {
        let response = LoginResponse::parse(response).ok()?;
        let is_last = response.status.is_success() && response.next_stage == Some(Stage::FullFeaturePhase);
        let negotiated = if self.is_incomplete { assumed } else { self.negotiated.unwrap_or(assumed) };
        is_last.then_some(negotiated)
    }
}
