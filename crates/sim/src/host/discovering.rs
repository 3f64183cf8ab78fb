//! Discovery before a host's first login (RFC 7143 §4.3).

use super::{Host, Login, RETRY_PAUSE};
use crate::portal::Portals;
use crate::reached::Way;
use crate::unit::{self, TargetIndex};
use client::{TargetRecord, discover};

impl Host {
    /// Asks one portal after the other for targets, until one answers: with all of them, and all portals of each.
    pub(super) async fn discover(&self, login: &Login, portals: &Portals) {
        for portal in login.config.portals.iter().cycle() {
            match discover(&login.environment, portal, &login.config).await {
                Ok(found) => return self.judge(found, portals),
                Err(error) => self.trace(|| format!("no list of targets: {error}")),
            }
            self.pause(RETRY_PAUSE).await;
        }
    }

    fn judge(&self, mut found: Vec<TargetRecord>, portals: &Portals) {
        let mut target_addresses = portals.target_addresses();
        target_addresses.sort();
        found.iter_mut().for_each(|target| target.target_addresses.sort());
        let targets = (0..unit::targets_of(&self.units)).map(TargetIndex);
        let record = |target: TargetIndex| TargetRecord {
            target_name: target.name(),
            target_addresses: target_addresses.clone(),
        };
        if !found.iter().eq(targets.map(record).collect::<Vec<_>>().iter()) {
            self.violate(&format!("it discovers {found:?}"));
        }
        self.ledger.borrow_mut().tally.reached.count(Way::Discovered);
    }
}
