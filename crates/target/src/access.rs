//! Access rights, by initiator name, by address, and by authenticated user.

use device::Visitor;
use ipnet::IpNet;
use serde::Deserialize;
use session::name;
use std::net::IpAddr;

/// A restriction to some initiators. An empty list restricts nothing; an initiator must match an entry of every other
/// list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Mask {
    /// Names of initiators, in full or, with a `*` at the end, by their beginning. A name is no secret: this separates
    /// friends, but does not keep strangers out.
    pub initiators: Vec<String>,
    /// Networks or single addresses, as `10.0.0.0/8` or `2001:db8::1/128`.
    pub addresses: Vec<IpNet>,
    /// CHAP users, who must be among those that the target authenticates.
    pub users: Vec<String>,
}

impl Mask {
    /// Whether this initiator passes.
    #[must_use]
    pub fn admits(&self, visitor: &Visitor<'_>) -> bool {
        self.admits_claim(visitor.initiator_name, visitor.address)
            && (self.users.is_empty() || visitor.user.is_some_and(|user| self.admits_user(user)))
    }

    /// Whether this user passes, from any initiator.
    #[must_use]
    pub(crate) fn admits_user(&self, user: &str) -> bool {
        self.users.is_empty() || self.users.iter().any(|admitted| admitted == user)
    }

    /// Whether an unauthenticated initiator passes that claims this name and connects from this address.
    #[must_use]
    pub(crate) fn admits_claim(&self, initiator_name: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let name_matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => name::starts_with(initiator_name, beginning),
            None => name::is_same(initiator_name, pattern),
        };
        (self.initiators.is_empty() || self.initiators.iter().any(name_matches))
            && (self.addresses.is_empty() || self.addresses.iter().any(|network| network.contains(&address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "iqn.2026-01.com.example:host-1";

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_empty_mask_admits_everybody() {
        assert!(Mask::default().admits_claim(NAME, address("192.0.2.1")));
    }

    #[test]
    fn a_name_is_matched_whole_or_by_its_beginning() {
        let mask =
            |pattern: &str| Mask { initiators: vec![pattern.into()], addresses: vec![], users: vec![] };
        assert!(mask("IQN.2026-01.com.example:host-1").admits_claim(NAME, address("::1")));
        assert!(mask("iqn.2026-01.com.example:*").admits_claim(NAME, address("::1")));
        assert!(!mask("iqn.2026-01.com.example:host").admits_claim(NAME, address("::1")));
        assert!(!mask("iqn.2026-01.com.example:host-1*").admits_claim("iqn", address("::1")));
    }

    #[test]
    fn an_address_is_matched_by_its_network_also_when_it_is_mapped_into_version_6() {
        let mask =
            Mask { initiators: vec![], addresses: vec!["192.0.2.0/24".parse().unwrap()], users: vec![] };
        assert!(mask.admits_claim(NAME, address("192.0.2.77")));
        assert!(mask.admits_claim(NAME, address("::ffff:192.0.2.77")));
        assert!(!mask.admits_claim(NAME, address("198.51.100.1")));
    }

    #[test]
    fn a_name_alone_does_not_open_an_address_mask() {
        let mask = Mask {
            initiators: vec![NAME.into()],
            addresses: vec!["192.0.2.0/24".parse().unwrap()],
            users: vec![],
        };
        assert!(!mask.admits_claim(NAME, address("198.51.100.1")));
        assert!(!mask.admits_claim("iqn.2026-01.com.example:other", address("192.0.2.1")));
    }

    #[test]
    fn a_user_is_admitted_only_when_it_was_proven() {
        let mask = Mask { users: vec!["alice".into()], ..Mask::default() };
        let admits = |user| mask.admits(&Visitor { initiator_name: NAME, address: address("::1"), user });
        assert!(admits(Some("alice")));
        assert!(!admits(Some("Alice")) && !admits(Some("bob")) && !admits(None));
    }
}
