//! The congestion control of connections whose number is tuned, and whether they are paced.

use client::{Config, Connections};
use congestion::Offered;
use framing::Congestion;
use policy::tuner::{AS_FLOWS, BBR_CONNECTIONS_MAX};

/// Those to use instead of BBR where many connections are wanted, the preferred first.
const FOR_MANY: [&str; 2] = ["cubic", "reno"];

/// Chooses the congestion control of connections that are tuned, unless the user has: not BBR, but with leave for the tuner
/// to use it. However BBR was chosen, few connections use it. A session that is to behave as few flows is not paced.
pub(crate) fn choose(config: &mut Config, offered: &Offered) {
    if config.connections != Connections::Auto {
        return;
    }
    if config.socket.congestion.is_none() {
        config.tuning.bbr = offered.is_allowed(BBR).then(|| BBR.to_owned());
        if is_bbr(&offered.default) {
            let for_many = FOR_MANY.into_iter().find(|name| offered.is_allowed(name));
            config.socket.congestion = for_many.map(Congestion::named);
        }
    }
    // Over a full path, paced flows lose less than those of others, and take more than they do: too much for few flows.
    config.socket.is_paced &= config.tuning.as_flows >= AS_FLOWS;
    let name = config.socket.congestion.as_ref().map_or(&offered.default, |congestion| &congestion.name);
    if is_bbr(name) {
        config.tuning.connections_max = config.tuning.connections_max.min(BBR_CONNECTIONS_MAX);
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
        config.socket.congestion = congestion.map(Congestion::named);
        let allowed = allowed.split_whitespace().map(str::to_owned).collect();
        choose(&mut config, &Offered { default: default.to_owned(), allowed, ..Offered::default() });
        config
    }

    fn congestion(config: &Config) -> Option<&str> {
        config.socket.congestion.as_ref().map(|congestion| congestion.name.as_str())
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
    fn a_session_that_is_to_count_as_few_flows_does_not_gain_by_pacing() {
        let is_paced = |as_flows, connections| {
            let mut config = Config { connections, ..Config::default() };
            config.tuning.as_flows = as_flows;
            choose(&mut config, &Offered::default());
            config.socket.is_paced
        };
        assert_eq!([1, 7, 8].map(|flows| is_paced(flows, Connections::Auto)), [false, false, true]);
        assert!(is_paced(1, Connections::Fixed(1)), "nothing is tuned");
    }

    #[test]
    fn a_number_that_the_user_sets_is_used_with_what_the_system_has() {
        let config = chosen("bbr", "reno cubic bbr", Connections::Fixed(16), None);
        assert_eq!((congestion(&config), config.tuning.connections_max), (None, 64));
    }
}
