//! Peers for the limits, and the memory that the sessions of one peer share, so that something is left to others.

use crate::logical_unit::TRANSFER_BYTES_MAX;
use crate::memory::Memory;
use crate::permit::Permits;
use crate::read_memory::bytes_per_peer;
use framing::Quota;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

/// The inverse of the share of all memory at which a peer gets no more memory for writes: four peers are needed to use
/// it up. Reservations for unsolicited data do not count.
const WRITE_SHARE_DIVISOR: usize = 4;

/// The length of the prefix that identifies an IPv6 host, from 1 to 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Prefix(u8);

/// A host for the limits: an IPv4 address, or an IPv6 network, of which one host may use every address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerHost(IpAddr);

impl Ipv6Prefix {
    /// The shortest network of a link (RFC 4291 §2.5.1), whose hosts choose their addresses freely.
    pub const LINK: Self = Self(64);

    /// `None` unless `bits` is from 1 to 128.
    #[must_use]
    pub const fn new(bits: u8) -> Option<Self> {
        if matches!(bits, 1..=128) { Some(Self(bits)) } else { None }
    }

    /// The host with this `address`. An IPv4-mapped IPv6 address is the IPv4 host's.
    #[must_use]
    pub fn host_of(self, address: IpAddr) -> PeerHost {
        PeerHost(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::MAX << (128 - u32::from(self.0));
                Ipv6Addr::from_bits(address.to_bits() & network).into()
            }
            address => address,
        })
    }
}

/// Bounds that the sessions from one host share. A peer can invent names but not addresses, because TCP needs an
/// answer.
pub(crate) struct Peer {
    /// For solicited data of writes.
    pub writes: Quota,
    /// The bytes of reads; see [`crate::read_memory`].
    pub read_bytes: Rc<Permits>,
}

/// The hosts that have sessions.
#[derive(Default)]
pub(crate) struct Peers(RefCell<HashMap<PeerHost, Rc<Peer>>>);

impl Peers {
    /// The bounds of a host, within the bounds that all share.
    pub(crate) fn at(&self, host: PeerHost, memory: &Memory) -> Rc<Peer> {
        let budget_bytes = memory.transfers.budget_bytes();
        let mut peers = self.0.borrow_mut();
        // Removes hosts whose sessions have ended.
        peers.retain(|_, peer| Rc::strong_count(peer) > 1);
        let new = || {
            // One command of the longest kind must always fit.
            let bytes = (budget_bytes / WRITE_SHARE_DIVISOR).max(TRANSFER_BYTES_MAX as usize);
            let read_bytes = Permits::new(bytes_per_peer(memory));
            Rc::new(Peer { writes: memory.writes.part(bytes), read_bytes })
        };
        Rc::clone(peers.entry(host).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(bits: u8, addresses: [&str; 2]) -> [PeerHost; 2] {
        let prefix = Ipv6Prefix::new(bits).unwrap();
        addresses.map(|address| prefix.host_of(address.parse().unwrap()))
    }

    #[test]
    fn addresses_of_one_network_are_one_host() {
        for (bits, addresses, same) in [
            (64, ["2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff"], true),
            (64, ["2001:db8::1", "2001:db8:0:1::1"], false),
            (48, ["2001:db8::1", "2001:db8:0:1::1"], true),
            (128, ["2001:db8::1", "2001:db8::2"], false),
            (128, ["2001:db8::1", "2001:db8::1"], true),
            (1, ["::1", "7fff::"], true),
            (1, ["::1", "8000::"], false),
        ] {
            let [one, other] = hosts(bits, addresses);
            assert_eq!(one == other, same, "{addresses:?} /{bits}");
        }
    }

    #[test]
    fn an_ipv4_address_is_one_host_also_when_it_is_mapped_into_ipv6() {
        let [plain, mapped] = hosts(64, ["192.0.2.1", "::ffff:192.0.2.1"]);
        assert_eq!(plain, mapped);
        let [one, other] = hosts(1, ["::ffff:192.0.2.1", "::ffff:192.0.2.2"]);
        assert_ne!(one, other);
    }

    #[test]
    fn a_prefix_has_from_1_to_128_bits() {
        assert_eq!([0, 129, u8::MAX].map(Ipv6Prefix::new), [None; 3]);
        assert!([1, 64, 128].into_iter().all(|bits| Ipv6Prefix::new(bits).is_some()));
    }
}
