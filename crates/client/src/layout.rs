//! How the connections of a target are to be distributed over sessions, before the target's limits are known.

use crate::{Config, Portal};

/// The most iSCSI sessions of one [`Target`](crate::Target). Targets limit sessions, and more bring no benefit.
pub(crate) const PATHS_MAX: usize = 64;

/// The intended distribution.
pub(crate) struct Layout {
    /// The portals of the sessions, in turn; at least one.
    pub portals: Vec<Portal>,
    pub connections: usize,
    pub connections_per_session: usize,
    pub sessions_max: usize,
}

impl Layout {
    pub fn new(config: &Config, portal: &Portal) -> Self {
        let portals = if config.portals.is_empty() { vec![portal.clone()] } else { config.portals.clone() };
        let connections = usize::from(config.connections);
        let sessions = config.sessions.map_or(portals.len(), usize::from).min(connections);
        let sessions_max = config.sessions.map_or(PATHS_MAX, usize::from).min(PATHS_MAX);
        Self {
            connections_per_session: connections.div_ceil(sessions.max(1)),
            portals,
            connections,
            sessions_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(connections: u16, sessions: Option<u16>, portals: usize) -> (usize, usize) {
        let portal: Portal = "host".parse().unwrap();
        let config =
            Config { connections, sessions, portals: vec![portal.clone(); portals], ..Config::default() };
        let layout = Layout::new(&config, &portal);
        (layout.connections_per_session, layout.sessions_max)
    }

    #[test]
    fn one_session_takes_all_connections_unless_told_otherwise() {
        assert_eq!(layout(8, None, 0), (8, PATHS_MAX));
        assert_eq!(layout(8, Some(1), 0), (8, 1));
    }

    #[test]
    fn forced_sessions_share_the_connections() {
        assert_eq!(layout(8, Some(3), 0), (3, 3));
        assert_eq!(layout(2, Some(4), 0), (1, 4));
    }

    #[test]
    fn every_portal_has_a_session() {
        assert_eq!(layout(8, None, 2), (4, PATHS_MAX));
    }
}
