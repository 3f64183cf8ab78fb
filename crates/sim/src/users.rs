//! The CHAP users of a world (RFC 7143 §12.1.3): who must prove to be whom.

use crate::random::Random;
use session::chap::{Account, Algorithms, Authentication, Credentials, Secret};
use std::sync::Arc;

/// How rare a world that asks for CHAP is.
const PROOFS_ONE_IN: u64 = 3;

const TARGET: &str = "the target";
const INTRUDER: &str = "the intruder";

/// The users of one world: each host is one, and so is an intruder, who may use the target too.
#[derive(Clone, Debug)]
pub struct Users {
    hosts: u16,
    /// The hosts want a proof of the target.
    is_mutual: bool,
}

impl Users {
    /// Those of a seed, if its target asks for proofs.
    #[must_use]
    pub fn of(seed: u64, hosts: usize) -> Option<Self> {
        let mut random = Random::new(seed, "users");
        let hosts = u16::try_from(hosts).unwrap_or(u16::MAX);
        random.one_in(PROOFS_ONE_IN).then(|| Self { hosts, is_mutual: random.one_in(2) })
    }

    /// What the target asks for, and can prove.
    #[must_use]
    pub fn authentication(&self) -> Option<Arc<Authentication>> {
        let hosts = (0..self.hosts).map(|host| account(&name_of(host)));
        let initiators = hosts.chain([account(INTRUDER)]).collect::<Option<_>>()?;
        Authentication::new(initiators, account(TARGET), Algorithms::default()).ok().map(Arc::new)
    }

    /// What a host proves, and wants proven.
    #[must_use]
    pub fn credentials(&self, host: u16) -> Option<Credentials> {
        let own = account(&name_of(host))?;
        if self.is_mutual {
            Credentials::mutual(own, account(TARGET)?).ok()
        } else {
            Some(Credentials::one_way(own))
        }
    }

    /// What the intruder proves.
    #[must_use]
    pub fn intruder() -> Option<Credentials> {
        account(INTRUDER).map(Credentials::one_way)
    }

    /// Whether this is the intruder, whose nexuses are none of the host's that has the same name and ISID.
    #[must_use]
    pub fn is_intruder(user: Option<&str>) -> bool {
        user == Some(INTRUDER)
    }

    /// What somebody says who does not know a host's secret.
    #[must_use]
    pub fn impostor(host: u16) -> Option<Credentials> {
        let guess = Secret::new(b"a wrong secret of somebody").ok()?;
        Account::new(name_of(host), guess).ok().map(Credentials::one_way)
    }
}

fn name_of(host: u16) -> String {
    format!("host {host}")
}

fn account(name: &str) -> Option<Account> {
    Account::new(name, Secret::new(format!("the secret of {name}").as_bytes()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_of_a_world_can_be_configured() {
        for is_mutual in [false, true] {
            let users = Users { hosts: 3, is_mutual };
            assert_eq!(users.authentication().map(|asked| asked.initiators().len()), Some(4));
            assert!((0..3).all(|host| users.credentials(host).is_some()));
        }
        assert!(Users::intruder().is_some() && Users::impostor(0).is_some());
    }
}
