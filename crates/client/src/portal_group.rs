//! The portals of one session: all of its connections lead to portals of one portal group (RFC 7143 §4.1.1).
//!
//! Only logins tell which portals these are. A portal of another group names it, or answers a connection that is to join
//! the session that this session does not exist.

use crate::{Error, LoginError, Portal};
use pdu::LoginStatus;
use session::login::initiator::{Failure, Remedy};

/// What logins have told of a portal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Nothing yet.
    Unknown,
    /// It is of the session's portal group.
    Member,
    /// It refused the present session: it is of another portal group, or the target has forgotten the session.
    Refused,
    /// It is of another portal group.
    Other,
}

/// The portals that a session uses in turn, as long as they may be of its portal group.
#[derive(Clone, Debug)]
pub(crate) struct PortalGroup {
    /// At least one.
    portals: Vec<(Portal, Standing)>,
    /// The portal whose turn it is.
    next: usize,
    /// The portal of the last leading connection.
    leading: Portal,
    /// The tag that this portal told.
    tag: Option<u16>,
}

impl PortalGroup {
    /// These portals, in this order; a session begins at the first.
    pub fn new(first: Portal, others: impl IntoIterator<Item = Portal>) -> Self {
        let portals = std::iter::once(first.clone()).chain(others);
        Self {
            portals: portals.map(|portal| (portal, Standing::Unknown)).collect(),
            next: 0,
            leading: first,
            tag: None,
        }
    }

    /// The portal of the leading connection.
    pub fn leading(&self) -> &Portal {
        &self.leading
    }

    /// The portal for the next login.
    pub fn take_next(&mut self) -> Portal {
        let count = self.portals.len();
        let mut in_turn = (self.next..self.next + count).map(|at| at % count);
        let at = in_turn.find(|at| self.portals[*at].1.may_be_member()).unwrap_or_default();
        self.next = (at + 1) % count;
        self.portals[at].0.clone()
    }

    /// The tag that a connection that joins the session must be told.
    pub const fn tag(&self) -> Option<u16> {
        self.tag
    }

    /// The tag that a leading connection must be told, so that its session ends the earlier one (§6.3.5). A portal that
    /// has served the earlier session may have been given another tag with a restart.
    pub fn tag_of_leading(&self, portal: &Portal) -> Option<u16> {
        self.tag.filter(|_| self.standing(portal) != Some(Standing::Member))
    }

    /// A session has begun at this portal.
    pub fn led(&mut self, portal: &Portal, tag: u16) {
        if self.tag.replace(tag).is_some_and(|before| before != tag) {
            self.forget(|_| true);
        }
        self.leading.clone_from(portal);
        self.joined(portal);
    }

    /// A connection has joined the session at this portal.
    pub fn joined(&mut self, portal: &Portal) {
        self.set(portal, Standing::Member);
    }

    /// Whether a login failed because its portal is not of the session's portal group, as far as anybody knows. The
    /// portal is then passed over. The refusal of a portal of the group concerns the session, not the portal.
    pub fn pass_over(&mut self, portal: &Portal, error: &Error) -> bool {
        let is_stranger =
            self.tag.is_some() && self.standing(portal).is_some_and(|standing| standing != Standing::Member);
        let Some(found) = standing_after(error).filter(|_| is_stranger) else { return false };
        self.set(portal, found);
        true
    }

    /// The session has ended, and with it the refusals that may have been due to its end.
    pub fn session_ended(&mut self) {
        self.forget(|standing| standing == Standing::Refused);
    }

    /// Whether the portal is one of these, and may be of the group.
    pub fn may_contain(&self, portal: &Portal) -> bool {
        self.standing(portal).is_some_and(Standing::may_be_member)
    }

    fn standing(&self, portal: &Portal) -> Option<Standing> {
        self.portals.iter().find(|(known, _)| known == portal).map(|(_, standing)| *standing)
    }

    fn set(&mut self, portal: &Portal, to: Standing) {
        let named = self.portals.iter_mut().filter(|(known, _)| known == portal);
        named.for_each(|(_, standing)| *standing = to);
    }

    fn forget(&mut self, is_forgotten: impl Fn(Standing) -> bool) {
        let forgotten = self.portals.iter_mut().filter(|(_, standing)| is_forgotten(*standing));
        forgotten.for_each(|(_, standing)| *standing = Standing::Unknown);
    }
}

impl Standing {
    const fn may_be_member(self) -> bool {
        matches!(self, Self::Unknown | Self::Member)
    }
}

/// The standing of a portal that is not known as a member, after a login that failed there. `None` if the failure is
/// transient, or the session has as many connections as it may.
fn standing_after(error: &Error) -> Option<Standing> {
    match error {
        Error::Login(LoginError::Failed { failure, .. }) => match failure {
            Failure::OtherPortalGroup { .. } => Some(Standing::Other),
            Failure::Refused(LoginStatus::TooManyConnections) => None,
            failure => (failure.remedy() != Remedy::RetryLater).then_some(Standing::Refused),
        },
        Error::Login(_) => Some(Standing::Refused),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetworkError;

    fn at(host: &str) -> Portal {
        host.parse().unwrap()
    }

    fn of(hosts: [&str; 3]) -> PortalGroup {
        let [first, second, third] = hosts.map(at);
        PortalGroup::new(first, [second, third])
    }

    /// A session of group 1 that has begun at `a`.
    fn begun() -> PortalGroup {
        let mut portals = of(["a", "b", "c"]);
        let first = portals.take_next();
        portals.led(&first, 1);
        portals
    }

    fn failed(failure: Failure) -> Error {
        LoginError::Failed { target: String::new(), portal: at("x"), failure }.into()
    }

    fn unknown_session() -> Error {
        failed(Failure::Refused(LoginStatus::SessionDoesNotExist))
    }

    fn next(portals: &mut PortalGroup, count: usize) -> String {
        (0..count).map(|_| portals.take_next().host).collect()
    }

    #[test]
    fn portals_are_taken_in_turn() {
        assert_eq!(next(&mut begun(), 4), "bcab");
    }

    #[test]
    fn a_portal_that_does_not_know_the_session_is_passed_over_while_it_lasts() {
        let mut portals = begun();
        assert!(portals.pass_over(&at("b"), &unknown_session()));
        assert_eq!(next(&mut portals, 3), "cac");
        portals.session_ended();
        assert_eq!(next(&mut portals, 3), "abc");
    }

    #[test]
    fn a_portal_that_names_another_group_is_passed_over_for_good() {
        let mut portals = begun();
        assert!(portals.pass_over(&at("b"), &failed(Failure::OtherPortalGroup { wanted: 1, found: 2 })));
        portals.session_ended();
        assert_eq!(next(&mut portals, 3), "cac");
    }

    #[test]
    fn a_portal_that_is_known_as_a_member_speaks_for_the_session() {
        let mut portals = begun();
        portals.joined(&at("b"));
        assert!(!portals.pass_over(&at("a"), &unknown_session()));
        assert!(!portals.pass_over(&at("b"), &unknown_session()));
        assert_eq!(next(&mut portals, 3), "bca");
    }

    #[test]
    fn a_portal_that_is_down_or_a_session_that_is_full_passes_nothing_over() {
        let mut portals = begun();
        let silent = NetworkError::Timeout { portal: at("b"), during: "login" };
        assert!(!portals.pass_over(&at("b"), &silent.into()));
        for status in [LoginStatus::TooManyConnections, LoginStatus::ServiceUnavailable] {
            assert!(!portals.pass_over(&at("b"), &failed(Failure::Refused(status))));
        }
    }

    #[test]
    fn no_portal_is_passed_over_before_the_first_session() {
        let mut portals = of(["a", "b", "c"]);
        assert!(!portals.pass_over(&at("a"), &unknown_session()));
    }

    #[test]
    fn only_a_portal_that_has_not_served_the_session_must_name_its_group() {
        let mut portals = begun();
        portals.joined(&at("b"));
        let tags = ["a", "b", "c"].map(|host| portals.tag_of_leading(&at(host)));
        assert_eq!(tags, [None, None, Some(1)]);
        portals.led(&at("a"), 2);
        assert_eq!(portals.tag_of_leading(&at("b")), Some(2));
    }

    #[test]
    fn a_portal_given_twice_is_one_portal() {
        let mut portals = of(["a", "b", "b"]);
        portals.led(&at("a"), 1);
        assert!(portals.pass_over(&at("b"), &unknown_session()));
        assert_eq!(next(&mut portals, 2), "aa");
    }
}
