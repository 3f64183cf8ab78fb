//! Who has the sessions of the targets, and who claims them: another CHAP user's login closes none of them.
//!
//! Names of initiators are only claimed, so the sessions of one name and ISID are separate for each user that logged in.

use super::tap::TargetSession;
use pdu::{Instant, Tsih};
use session::parameters::Identity;
use session::target::Applicant;
use std::collections::HashMap;

/// The sessions of all targets.
#[derive(Debug, Default)]
pub struct Claims {
    owners: HashMap<TargetSession, (Identity, Option<String>)>,
    /// The last login that asked for a place, and the sessions of the same name and ISID that are another user's.
    last: Option<(Instant, Vec<TargetSession>)>,
}

impl Claims {
    /// A login asks for its place.
    pub fn ask(&mut self, now: Instant, applicant: &Applicant) {
        let is_anothers = |(identity, user): &(Identity, Option<String>)| {
            *identity == applicant.identity && *user != applicant.user
        };
        let others = self.owners.iter().filter(|(_, owner)| is_anothers(owner));
        self.last = Some((now, others.map(|(session, _)| *session).collect()));
    }

    /// It gets a place in this session.
    ///
    /// # Errors
    /// The session is another user's.
    pub fn place(&mut self, session: TargetSession, applicant: &Applicant) -> Result<(), String> {
        let owner = (applicant.identity.clone(), applicant.user.clone());
        if applicant.tsih == Tsih::NEW_SESSION {
            self.owners.insert(session, owner);
            return Ok(());
        }
        match self.owners.get(&session) {
            Some(known) if *known != owner => Err(format!("{owner:?} joins the session of {known:?}")),
            _ => Ok(()),
        }
    }

    /// The target closes a connection of a session, by itself.
    ///
    /// # Errors
    /// It does so in the very moment in which another user claims the session's name: nothing else takes no time.
    pub fn close(&self, now: Instant, session: TargetSession) -> Result<(), String> {
        match &self.last {
            Some((at, sessions)) if *at == now && sessions.contains(&session) => {
                Err("a session is closed because another user claims its name".into())
            }
            _ => Ok(()),
        }
    }

    /// The target died.
    pub fn crash(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::TargetIndex;
    use pdu::{Cid, Isid};

    fn applicant(user: &str, tsih: Tsih) -> Applicant {
        let identity = Identity {
            initiator_name: "iqn.2026-01.org.ropewalk:host-0".into(),
            isid: Isid([0; 6]),
            target_name: "iqn.2026-01.org.ropewalk:sim".into(),
            portal_group_tag: 1,
        };
        Applicant { identity, user: Some(user.into()), tsih, cid: Cid(0), max_connections: 1 }
    }

    #[test]
    fn a_session_is_closed_by_its_own_user_and_by_no_other() {
        let mut claims = Claims::default();
        let (now, tsih) = (Instant(7), Tsih(3));
        let session = TargetSession { target: TargetIndex::FIRST, tsih };
        assert_eq!(claims.place(session, &applicant("host 0", Tsih::NEW_SESSION)), Ok(()));
        claims.ask(now, &applicant("host 0", Tsih::NEW_SESSION));
        assert_eq!(claims.close(now, session), Ok(()));
        claims.ask(now, &applicant("the intruder", Tsih::NEW_SESSION));
        assert!(claims.close(now, session).is_err());
        assert_eq!(claims.close(Instant(8), session), Ok(()));
        assert!(claims.place(session, &applicant("the intruder", tsih)).is_err());
    }
}
