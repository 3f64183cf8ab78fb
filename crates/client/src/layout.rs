//! How the connections of a target are to be distributed over sessions, before the target's limits are known.

use crate::portal_group::PortalGroup;
use crate::{Config, Portal};

/// The most iSCSI sessions of one [`Target`](crate::Target). Targets limit sessions, and more bring no benefit.
pub(crate) const PATHS_MAX: usize = 64;

/// The most connections that are made before the first login: not more than a target's queue of connections holds.
const EARLY_DIALS_MAX: usize = 32;

/// The intended distribution.
pub(crate) struct Layout {
    /// The portals of the connections, in turn; at least one.
    pub portals: Vec<Portal>,
    pub connections: usize,
    pub connections_per_session: usize,
    pub sessions_max: usize,
    /// Whether every portal group gets a session for the connections at its portals.
    pub by_portal_group: bool,
}

impl Layout {
    /// The distribution of this many connections.
    pub fn new(config: &Config, connections: usize, portal: &Portal) -> Self {
        let portals = if config.portals.is_empty() { vec![portal.clone()] } else { config.portals.clone() };
        let sessions = config.sessions.map_or(1, usize::from).min(connections);
        Self {
            connections_per_session: connections.div_ceil(sessions.max(1)),
            portals,
            connections,
            sessions_max: config.sessions_max(),
            by_portal_group: config.sessions.is_none(),
        }
    }

    /// The distribution over sessions of one connection each. No session has a second one before it is known to help.
    pub fn spread(self) -> Self {
        let connections = self.connections.min(self.sessions_max);
        Self { connections, connections_per_session: 1, by_portal_group: false, ..self }
    }

    /// The portals of a session, by its number: each session begins at another.
    pub fn portals_from(&self, session: usize) -> PortalGroup {
        let (before, after) = self.portals.split_at(session % self.portals.len());
        PortalGroup::new(after[0].clone(), after[1..].iter().chain(before).cloned())
    }

    /// The portals of the connections that may be made before the first login, in their turn; none for a connection that
    /// is alone.
    pub fn early_portals(&self) -> impl Iterator<Item = &Portal> {
        let connections = if self.connections > 1 { self.connections.min(EARLY_DIALS_MAX) } else { 0 };
        self.portals.iter().cycle().take(connections)
    }

    /// The connections for a session that uses these portals, if every portal is to have as many.
    pub fn share(&self, is_used: impl Fn(&Portal) -> bool) -> usize {
        self.portals.iter().cycle().take(self.connections).filter(|portal| is_used(portal)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Connections;

    fn layout(connections: u16, sessions: Option<u16>, portals: usize) -> (usize, usize) {
        let portal: Portal = "host".parse().unwrap();
        let config = Config {
            connections: Connections::Fixed(connections),
            sessions,
            portals: vec![portal.clone(); portals],
            ..Config::default()
        };
        let layout = Layout::new(&config, connections.into(), &portal);
        (layout.connections_per_session, layout.sessions_max)
    }

    #[test]
    fn one_session_takes_all_connections_unless_told_otherwise() {
        assert_eq!(layout(8, None, 0), (8, PATHS_MAX));
        assert_eq!(layout(8, Some(1), 0), (8, 1));
    }

    #[test]
    fn a_tuned_target_is_shown_no_more_than_eight_sessions() {
        let layout = |sessions| {
            let config = Config { connections: Connections::Auto, sessions, ..Config::default() };
            Layout::new(&config, 16, &"url".parse().unwrap()).sessions_max
        };
        assert_eq!(layout(None), 8);
        assert_eq!(layout(Some(12)), 12, "unless its user asks for more");
    }

    #[test]
    fn forced_sessions_share_the_connections() {
        assert_eq!(layout(8, Some(3), 0), (3, 3));
        assert_eq!(layout(2, Some(4), 0), (1, 4));
    }

    #[test]
    fn one_session_takes_all_connections_of_all_portals() {
        assert_eq!(layout(8, None, 2), (8, PATHS_MAX));
        assert_eq!(layout(8, Some(2), 2), (4, 2));
    }

    #[test]
    fn connections_are_spread_over_as_many_sessions_as_there_may_be() {
        let spread = |connections| {
            let config = Config { connections: Connections::Auto, ..Config::default() };
            let layout = Layout::new(&config, connections, &"url".parse().unwrap()).spread();
            (layout.connections, layout.connections_per_session)
        };
        assert_eq!(spread(4), (4, 1));
        assert_eq!(spread(16), (8, 1));
    }

    fn names(mut portals: PortalGroup, count: usize) -> String {
        (0..count).map(|_| portals.take_next().host).collect()
    }

    fn at_three_portals(connections: usize) -> Layout {
        let portals = ["a", "b", "c"].map(|host| host.parse().unwrap()).into();
        Layout::new(&Config { portals, ..Config::default() }, connections, &"url".parse().unwrap())
    }

    #[test]
    fn connections_take_the_portals_in_turn_and_every_session_begins_at_another() {
        let layout = at_three_portals(4);
        assert_eq!(names(layout.portals_from(0), 4), "abca");
        assert_eq!(names(layout.portals_from(1), 4), "bcab");
        assert_eq!(names(layout.portals_from(5), 4), "cabc");
    }

    #[test]
    fn the_portal_of_the_url_serves_where_none_is_given() {
        let layout = Layout::new(&Config::default(), 16, &"url".parse().unwrap());
        assert_eq!(names(layout.portals_from(3), 2), "urlurl");
    }

    #[test]
    fn each_portal_group_has_the_connections_of_its_portals() {
        let layout = at_three_portals(8);
        assert_eq!(layout.share(|portal| portal.host != "b"), 5);
        assert_eq!(layout.share(|portal| portal.host == "b"), 3);
        assert_eq!(at_three_portals(2).share(|portal| portal.host == "c"), 0);
    }
}
