//! How long a session was without any connection at its target, which remembers it for a while (RFC 7143 §7.5).

use pdu::{Duration, Instant};

/// The connections of one session, as its target counts them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Presence {
    connections: u32,
    /// Since when there is none.
    alone_since: Option<Instant>,
    alone_longest: Duration,
    /// The target has told, or tells now, that the session ends.
    pub is_ending: bool,
}

impl Presence {
    /// One more connection.
    pub fn join(&mut self, now: Instant) {
        self.alone_longest = self.alone_longest(now);
        self.alone_since = None;
        self.connections += 1;
    }

    /// One connection fewer; the session is alone after its last.
    pub fn leave(&mut self, now: Instant) {
        self.connections = self.connections.saturating_sub(1);
        if self.connections == 0 {
            self.alone_since = Some(now);
        }
    }

    pub fn has_connections(&self) -> bool {
        self.connections > 0
    }

    /// How long it was without a connection, at the most.
    pub fn alone_longest(&self, now: Instant) -> Duration {
        let alone = self.alone_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.alone_longest.max(alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_alone_from_its_last_connection_to_its_next() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut presence = Presence::default();
        presence.join(at(0));
        presence.join(at(1));
        presence.leave(at(2));
        assert_eq!(presence.alone_longest(at(9)), Duration::ZERO);
        presence.leave(at(10));
        presence.join(at(15));
        presence.leave(at(17));
        assert_eq!(presence.alone_longest(at(18)), Duration::from_secs(5));
        assert_eq!(presence.alone_longest(at(30)), Duration::from_secs(13));
    }
}
