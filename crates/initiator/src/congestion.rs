//! The congestion control of connections whose number is tuned.

use client::{Config, Connections};
use policy::tuner::BBR_CONNECTIONS_MAX;
use std::fs;

/// Those to use instead of BBR where many connections are wanted, the preferred first.
const FOR_MANY: [&str; 2] = ["cubic", "reno"];

/// What the kernel offers.
pub(crate) struct Offered {
    default: String,
    allowed: String,
}

impl Offered {
    /// What the network namespace of this thread offers; nothing if that cannot be read.
    pub(crate) fn here() -> Self {
        let setting = |name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        Self {
            default: setting("tcp_congestion_control").trim().to_owned(),
            allowed: setting("tcp_allowed_congestion_control"),
        }
    }

    /// Chooses the congestion control of connections that are tuned, unless the user has: not BBR, but with leave for the
    /// tuner to use it. However BBR was chosen, few connections use it.
    pub(crate) fn choose(&self, config: &mut Config) {
        if config.connections != Connections::Auto {
            return;
        }
        if config.socket.congestion.is_none() {
            config.tuning.bbr = self.is_allowed(&BBR).then(|| BBR.to_owned());
            if is_bbr(&self.default) {
                config.socket.congestion = self.for_many().map(str::to_owned);
            }
        }
        if is_bbr(config.socket.congestion.as_deref().unwrap_or(&self.default)) {
            config.tuning.connections_max = config.tuning.connections_max.min(BBR_CONNECTIONS_MAX);
        }
    }

    fn for_many(&self) -> Option<&'static str> {
        FOR_MANY.into_iter().find(|name| self.is_allowed(name))
    }

    fn is_allowed(&self, name: &&str) -> bool {
        self.allowed.split_whitespace().any(|allowed| allowed == *name)
    }
}

/// The kernel's name for it.
const BBR: &str = "bbr";

fn is_bbr(name: &str) -> bool {
    name.starts_with(BBR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(default: &str, allowed: &str, connections: Connections, congestion: Option<&str>) -> Config {
        let mut config = Config { connections, ..Config::default() };
        config.socket.congestion = congestion.map(str::to_owned);
        Offered { default: default.to_owned(), allowed: allowed.to_owned() }.choose(&mut config);
        config
    }

    fn congestion(config: &Config) -> Option<&str> {
        config.socket.congestion.as_deref()
    }

    #[test]
    fn many_connections_do_not_begin_with_bbr() {
        let config = chosen("bbr", "reno cubic bbr\n", Connections::Auto, None);
        assert_eq!((congestion(&config), config.tuning.connections_max), (Some("cubic"), 64));
        assert_eq!(congestion(&chosen("bbr2", "reno bbr2", Connections::Auto, None)), Some("reno"));
    }

    #[test]
    fn a_default_that_suits_many_connections_stays() {
        assert_eq!(congestion(&chosen("htcp", "htcp reno cubic", Connections::Auto, None)), None);
    }

    #[test]
    fn the_tuner_may_use_bbr_where_the_system_allows_it_and_the_user_has_not_chosen() {
        let bbr = |allowed, congestion| chosen("cubic", allowed, Connections::Auto, congestion).tuning.bbr;
        assert_eq!(bbr("reno cubic bbr", None).as_deref(), Some("bbr"));
        assert_eq!(bbr("reno cubic", None), None);
        assert_eq!(bbr("reno cubic bbr", Some("cubic")), None);
    }

    #[test]
    fn at_most_two_connections_use_bbr_however_it_was_chosen() {
        let most = |default, allowed, congestion| {
            chosen(default, allowed, Connections::Auto, congestion).tuning.connections_max
        };
        assert_eq!(most("cubic", "cubic bbr", Some("bbr")), 2);
        assert_eq!(most("bbr", "bbr", None), 2);
    }

    #[test]
    fn a_number_that_the_user_sets_is_used_with_what_the_system_has() {
        let config = chosen("bbr", "reno cubic bbr", Connections::Fixed(16), None);
        assert_eq!((congestion(&config), config.tuning.connections_max), (None, 64));
    }
}
