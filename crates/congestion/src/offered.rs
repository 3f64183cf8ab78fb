//! What the kernel offers.

use std::fs;

/// The congestion controls of a network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// What a socket has if nothing is chosen.
    pub default: String,
    /// What any user may choose.
    pub allowed: Vec<String>,
    /// What root may choose.
    pub available: Vec<String>,
}

impl Offered {
    /// Those of this thread's network namespace; none if that cannot be read.
    #[must_use]
    pub fn here() -> Self {
        let setting = |name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        let list = |name| setting(name).split_whitespace().map(str::to_owned).collect();
        Self {
            default: setting("tcp_congestion_control").trim().to_owned(),
            allowed: list("tcp_allowed_congestion_control"),
            available: list("tcp_available_congestion_control"),
        }
    }

    /// Whether any user may choose the one of this name.
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
