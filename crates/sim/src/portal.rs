//! The portals at which the target listens, in their portal groups (RFC 7143 §4.1.1).
//!
//! A portal has troubles of its own: one may be away while the others work.

use crate::random::Random;
use pdu::{Duration, Instant};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const PORT: u16 = 3260;

/// The network of all portals (TEST-NET-1, RFC 5737); a portal's number is the last byte.
const NETWORK: [u8; 3] = [192, 0, 2];

/// How rare a world with a single portal is.
const ONE_PORTAL_ONE_IN: u64 = 2;

/// How many portals the others have, and in how many groups.
const PORTALS: (u64, u64) = (2, 4);
const GROUPS: (u64, u64) = (1, 3);

/// How long a portal's trouble lasts: shorter than a login may take, or longer.
const TROUBLE_MS: (u64, u64) = (100, 60_000);

/// One portal of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortalId(u8);

impl PortalId {
    /// Where it listens.
    #[must_use]
    pub const fn address(self) -> SocketAddr {
        let [a, b, c] = NETWORK;
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(a, b, c, self.0)), PORT)
    }

    /// The portal that listens there.
    #[must_use]
    pub fn at(host: &str) -> Option<Self> {
        let [network @ .., number] = host.parse::<Ipv4Addr>().ok()?.octets();
        (network == NETWORK).then_some(Self(number))
    }
}

/// All portals of the target, each with the tag of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portals(Vec<u16>);

impl Portals {
    /// Those of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed, "portals");
        if random.one_in(ONE_PORTAL_ONE_IN) {
            return Self(vec![1]);
        }
        let groups = random.between(GROUPS.0, GROUPS.1);
        let portals = random.between(PORTALS.0, PORTALS.1);
        Self((0..portals).map(|_| u16::try_from(random.between(1, groups)).unwrap_or(1)).collect())
    }

    /// Each of them.
    pub fn all(&self) -> impl ExactSizeIterator<Item = PortalId> + Clone {
        (0..self.0.len()).map(|number| PortalId(u8::try_from(number).unwrap_or(u8::MAX)))
    }

    /// The portal group of one.
    #[must_use]
    pub fn group(&self, portal: PortalId) -> u16 {
        self.0.get(usize::from(portal.0)).copied().unwrap_or_default()
    }

    /// The tags of all groups.
    #[must_use]
    pub fn groups(&self) -> Vec<u16> {
        let mut tags = self.0.clone();
        tags.sort_unstable();
        tags.dedup();
        tags
    }

    /// What SendTargets tells of each (RFC 7143, appendix C).
    #[must_use]
    pub fn target_addresses(&self) -> Vec<String> {
        self.all().map(|portal| format!("{},{}", portal.address(), self.group(portal))).collect()
    }
}

/// What is wrong with a portal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It breaks its connections, and refuses new ones.
    Refuses,
    /// Nothing reaches it and nothing comes from it, new connections included.
    Unreachable,
    /// What its connections carry arrives later; new ones are taken.
    Stalls,
}

/// The misfortune of one portal.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// The portal in trouble.
    pub portal: PortalId,
    /// What is wrong with it.
    pub trouble: Trouble,
    /// When it is over.
    pub until: Instant,
}

impl Outage {
    /// Of any of them, from now on.
    pub fn draw(portals: &Portals, now: Instant, random: &mut Random) -> Option<Self> {
        let portal = portals.all().nth(random.index(portals.all().len()))?;
        let trouble = *random.choose(&[Trouble::Refuses, Trouble::Unreachable, Trouble::Stalls]);
        Some(Self {
            portal,
            trouble,
            until: now + Duration::from_millis(random.between(TROUBLE_MS.0, TROUBLE_MS.1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portal_is_found_by_its_address() {
        for portal in Portals(vec![1, 2, 2]).all() {
            assert_eq!(PortalId::at(&portal.address().ip().to_string()), Some(portal));
        }
        assert_eq!(PortalId::at("198.51.100.1"), None);
    }

    #[test]
    fn groups_are_told_once() {
        assert_eq!(Portals(vec![3, 1, 3]).groups(), [1, 3]);
    }
}
