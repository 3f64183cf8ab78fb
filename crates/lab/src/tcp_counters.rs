//! What the TCP of a host has sent again, and why, over all its connections.

use crate::experiment::Quantity;
use crate::namespace::Namespace;
use std::collections::BTreeMap;
use std::fs;
use std::io;

/// The kernel's counters (`/proc/net/snmp` and `/proc/net/netstat`): the protocol, the counter, and what it counts here. Each
/// timeout sends one segment again, which the kernel does not count among those of the slow start that follows.
const COUNTERS: [(&str, &str, Quantity); 6] = [
    ("Tcp:", "RetransSegs", Quantity::Retransmitted),
    ("TcpExt:", "TCPFastRetrans", Quantity::RetransmittedInRecovery),
    ("TcpExt:", "TCPSlowStartRetrans", Quantity::RetransmittedAfterTimeout),
    ("TcpExt:", "TCPTimeouts", Quantity::RetransmittedAfterTimeout),
    ("TcpExt:", "TCPLossProbes", Quantity::LossProbes),
    ("TcpExt:", "TCPTimeouts", Quantity::Timeouts),
];

/// The counters of hosts at one moment.
pub(crate) struct TcpCounters(BTreeMap<Quantity, u64>);

impl TcpCounters {
    /// Reads those of these hosts, added up.
    ///
    /// # Errors
    /// The kernel's own.
    pub(crate) fn of(hosts: &[&Namespace]) -> io::Result<Self> {
        let mut counters = BTreeMap::new();
        for host in hosts {
            // Of the thread, as the process's other threads are elsewhere.
            let files = ["snmp", "netstat"].map(|name| format!("/proc/thread-self/net/{name}"));
            let [snmp, netstat] = host.run(|| files.map(fs::read_to_string))?;
            let text = snmp? + &netstat?;
            for (protocol, name, quantity) in COUNTERS {
                // Some kernels do not count everything.
                if let Some(count) = counter(&text, protocol, name) {
                    *counters.entry(quantity).or_default() += count;
                }
            }
        }
        Ok(Self(counters))
    }

    /// What has been counted since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> BTreeMap<Quantity, f64> {
        let before = |quantity| earlier.0.get(quantity).copied().unwrap_or(0);
        let since = |quantity, now: &u64| now.saturating_sub(before(quantity)) as f64;
        let counted = self.0.iter().map(|(quantity, now)| (*quantity, since(quantity, now)));
        counted.collect()
    }
}

/// A protocol has two lines: the names of its counters, and their values.
fn counter(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.split_whitespace().next() == Some(protocol));
    let (names, values) = (lines.next()?.split_whitespace(), lines.next()?.split_whitespace());
    names.zip(values).find(|(known, _)| *known == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_protocol_and_its_name() {
        let text = "Tcp: InSegs RetransSegs\nTcp: 12 3\nTcpExt: TCPTimeouts TCPLossProbes\nTcpExt: 4 5\n";
        assert_eq!(counter(text, "Tcp:", "RetransSegs"), Some(3));
        assert_eq!(counter(text, "TcpExt:", "TCPTimeouts"), Some(4));
        assert_eq!(counter(text, "TcpExt:", "RetransSegs"), None);
    }
}
