//! What the kernel offers.

use socket2::{Domain, Socket, Type};
use std::fs;

/// The congestion controls of a network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// What a socket has if nothing is chosen.
    pub default: String,
    /// What a socket of this process may choose: for root that is more than `tcp_allowed_congestion_control`.
    pub allowed: Vec<String>,
    /// What the kernel has.
    pub available: Vec<String>,
}

impl Offered {
    /// Those of this thread's network namespace; none if that cannot be read.
    #[must_use]
    pub fn here() -> Self {
        let setting = |name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        let available = setting("tcp_available_congestion_control");
        let available: Vec<_> = available.split_whitespace().map(str::to_owned).collect();
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
        let may_choose = |name: &&String| {
            socket.as_ref().is_ok_and(|socket| socket.set_tcp_congestion(name.as_bytes()).is_ok())
        };
        Self {
            default: setting("tcp_congestion_control").trim().to_owned(),
            allowed: available.iter().filter(may_choose).cloned().collect(),
            available,
        }
    }

    /// Whether a socket of this process may choose the one of this name.
    #[must_use]
    pub fn is_allowed(&self, name: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == name)
    }

    /// Whether there is one of this name.
    #[must_use]
    pub fn is_available(&self, name: &str) -> bool {
        self.available.iter().any(|available| available == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_choose_the_default_and_whatever_any_user_may() {
        let offered = Offered::here();
        let any_user = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
        assert!(offered.is_allowed(&offered.default), "{offered:?}");
        assert!(any_user.split_whitespace().all(|name| offered.is_allowed(name)), "{any_user}, {offered:?}");
    }
}
