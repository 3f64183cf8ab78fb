//! Portal groups: the addresses of targets (RFC 7143 §4.1.1, §13.9).

use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};

/// Addresses through which the connections of one session may come together.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortalGroupConfig {
    /// Its portal group tag.
    pub tag: u16,
    /// Addresses to accept connections on. Port 0 lets the system choose.
    pub portals: Vec<SocketAddr>,
}

/// One listening address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portal {
    pub(crate) address: SocketAddr,
    pub(crate) tag: u16,
}

impl Portal {
    /// The address to tell an initiator that came through another one, `arrival`: one that it can reach, as far as the
    /// server can know. For a portal that listens on all addresses, that is the address at which the initiator arrived.
    pub(crate) fn address_for(&self, arrival: SocketAddr) -> Option<SocketAddr> {
        let own = self.address;
        let arrival_ip = arrival.ip().to_canonical();
        if own.ip().is_unspecified() {
            let accepts = own.is_ipv6() || arrival_ip.is_ipv4();
            return accepts.then(|| SocketAddr::new(arrival_ip, own.port()));
        }
        let hidden = is_loopback(own.ip()) && !is_loopback(arrival_ip);
        (!hidden).then(|| SocketAddr::new(own.ip().to_canonical(), own.port()))
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The addresses of those of `portals` whose group passes, in the form of SendTargets. The one at which the initiator
/// arrived comes first, for initiators that use only one.
pub(crate) fn target_addresses(
    portals: &[Portal],
    serves: impl Fn(u16) -> bool,
    arrival: SocketAddr,
) -> Vec<String> {
    let arrival = SocketAddr::new(arrival.ip().to_canonical(), arrival.port());
    let named = |portal: &Portal| Some((portal.address_for(arrival)?, portal.tag));
    let mut addresses: Vec<_> =
        portals.iter().filter(|portal| serves(portal.tag)).filter_map(named).collect();
    addresses.sort_by_key(|(address, _)| *address != arrival);
    addresses.iter().map(|(address, tag)| format!("{address},{tag}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn portal(address: &str, tag: u16) -> Portal {
        Portal { address: address.parse().unwrap(), tag }
    }

    fn named(portals: &[Portal], arrival: &str) -> Vec<String> {
        target_addresses(portals, |tag| tag != 9, arrival.parse().unwrap())
    }

    #[test]
    fn all_portals_of_the_groups_are_named_the_one_of_arrival_first() {
        let portals =
            [portal("192.0.2.1:3260", 1), portal("[2001:db8::1]:3260", 2), portal("192.0.2.9:1", 9)];
        assert_eq!(named(&portals, "192.0.2.1:3260"), ["192.0.2.1:3260,1", "[2001:db8::1]:3260,2"]);
        assert_eq!(named(&portals, "[2001:db8::1]:3260"), ["[2001:db8::1]:3260,2", "192.0.2.1:3260,1"]);
    }

    #[test]
    fn a_portal_on_all_addresses_is_named_by_the_one_of_arrival() {
        assert_eq!(named(&[portal("0.0.0.0:3260", 1)], "192.0.2.7:3260"), ["192.0.2.7:3260,1"]);
        assert_eq!(named(&[portal("[::]:3260", 1)], "[::ffff:192.0.2.7]:3260"), ["192.0.2.7:3260,1"]);
        assert_eq!(named(&[portal("0.0.0.0:3260", 1)], "[2001:db8::1]:3260"), Vec::<String>::new());
    }

    #[test]
    fn loopback_is_named_to_those_who_came_by_it_only() {
        let portals = [portal("127.0.0.1:3260", 1), portal("192.0.2.1:3260", 1)];
        assert_eq!(named(&portals, "192.0.2.1:3260"), ["192.0.2.1:3260,1"]);
        assert_eq!(named(&portals, "127.0.0.1:3260"), ["127.0.0.1:3260,1", "192.0.2.1:3260,1"]);
    }
}
