//! The targets of a server as a login sees them: access rights and credentials.

use crate::access::Mask;
use crate::chap::{SecretError, check_secrets};
use crate::config::{Config, TargetConfig};
use crate::name::IscsiName;
use crate::portal_group::{Portal, target_addresses};
use device::{Visibility, Visitor};
use pdu::LoginStatus;
use session::chap::{Account, Authentication};
use session::login::target::{Access, Denial, Directory, Redirection};
use session::name;
use session::target::TargetRecord;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// All targets. Constant, and the same for every shard.
#[derive(Debug)]
pub(crate) struct Catalog {
    entries: Vec<Entry>,
    discovery: Discovery,
    portals: Vec<Portal>,
}

#[derive(Debug)]
struct Discovery {
    authentication: Option<Arc<Authentication>>,
    redirection: Option<Redirection>,
}

#[derive(Debug)]
struct Entry {
    name: IscsiName,
    alias: Option<String>,
    mask: Mask,
    /// The access rights to its units.
    unit_masks: HashMap<u16, Mask>,
    authentication: Option<Arc<Authentication>>,
    /// The tags of the portal groups that serve it; empty means all.
    portal_groups: Vec<u16>,
    redirection: Option<Redirection>,
    shard: usize,
}

/// Discovery sessions have no target; they all live on the shard that accepts.
pub(crate) const DISCOVERY_SHARD: usize = 0;

impl Catalog {
    /// Reads the secrets and assigns the targets to the shards in turn. `portals` are the listening portals.
    pub(crate) fn new(config: &Config, portals: Vec<Portal>) -> Result<Self, SecretError> {
        let discovery = config.discovery.chap.as_ref();
        let discovery = Discovery {
            authentication: discovery
                .map(|chap| chap.authentication(&config.chap_algorithms).map(Arc::new))
                .transpose()?,
            redirection: config.discovery.redirect.as_ref().map(Redirection::from),
        };
        let entries = config.targets.iter().enumerate();
        let entries = entries.map(|(index, target)| Entry::new(config, target, index % config.shards()));
        let catalog = Self { entries: entries.collect::<Result<_, _>>()?, discovery, portals };
        let targets = catalog.entries.iter().filter_map(|entry| entry.authentication.as_deref());
        check_secrets(targets.chain(catalog.discovery.authentication.as_deref()))?;
        Ok(catalog)
    }

    /// The shard of a target's sessions. An empty name means discovery.
    pub(crate) fn shard_of(&self, target_name: &str) -> usize {
        self.find(target_name).map_or(DISCOVERY_SHARD, |entry| entry.shard)
    }

    fn find(&self, target_name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| name::is_same(entry.name.as_str(), target_name))
    }

    /// Whether any target authenticates this user.
    fn knows_user(&self, user: &str) -> bool {
        self.entries.iter().any(|entry| entry.has_user(user))
    }
}

impl Entry {
    fn new(config: &Config, target: &TargetConfig, shard: usize) -> Result<Self, SecretError> {
        let authentication = match &target.chap {
            Some(chap) => Some(Arc::new(chap.authentication_of(&target.mask, &config.chap_algorithms)?)),
            None => None,
        };
        Ok(Self {
            name: target.name.clone(),
            alias: target.alias.clone(),
            mask: target.mask.clone(),
            unit_masks: target.luns.iter().map(|lun| (lun.number, lun.mask.clone())).collect(),
            authentication,
            portal_groups: target.portal_groups.clone(),
            redirection: target.redirect.as_ref().map(Redirection::from),
            shard,
        })
    }

    fn is_served_by(&self, portal_group_tag: u16) -> bool {
        self.portal_groups.is_empty() || self.portal_groups.contains(&portal_group_tag)
    }

    fn has_user(&self, user: &str) -> bool {
        let accounts = self.authentication.as_deref().map_or(&[][..], Authentication::initiators);
        accounts.iter().map(Account::name).any(|name| name == user)
    }
}

impl Visibility for Catalog {
    fn shows_unit(&self, visitor: &Visitor<'_>, target_name: &str, number: u16) -> bool {
        let masks = self.find(target_name).map(|entry| &entry.unit_masks);
        masks.and_then(|masks| masks.get(&number)).is_some_and(|mask| mask.admits(visitor))
    }

    /// An initiator that has authenticated as a user of some targets sees, of the targets that authenticate users, only
    /// those. A user of discovery alone may have another name for each target, so nothing is hidden from it.
    fn targets(&self, visitor: &Visitor<'_>, portal: SocketAddr, only: Option<&str>) -> Vec<TargetRecord> {
        let user = visitor.user.filter(|user| self.knows_user(user));
        let may_use = |entry: &Entry| {
            let refused = user.is_some_and(|user| entry.authentication.is_some() && !entry.has_user(user));
            !refused && entry.mask.admits_claim(visitor.initiator_name, visitor.address)
        };
        let wanted = |entry: &&Entry| {
            only.is_none_or(|name| name::is_same(entry.name.as_str(), name)) && may_use(entry)
        };
        let record = |entry: &Entry| TargetRecord {
            target_name: entry.name.to_string(),
            target_addresses: target_addresses(&self.portals, |tag| entry.is_served_by(tag), portal),
        };
        let records = self.entries.iter().filter(wanted).map(record);
        // A record without an address would mean this very portal (RFC 7143 appendix C).
        records.filter(|record| !record.target_addresses.is_empty()).collect()
    }
}

/// The catalog's answers to a login from one address through a portal of one group.
pub(crate) struct Doorkeeper<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) peer: IpAddr,
    pub(crate) portal_group_tag: u16,
}

impl Directory for Doorkeeper<'_> {
    fn access(&self, initiator_name: &str, target_name: Option<&str>) -> Result<Access, Denial> {
        let Some(target_name) = target_name else {
            let Discovery { authentication, redirection } = &self.catalog.discovery;
            return match redirection {
                Some(redirection) => Err(Denial::Redirected(redirection.clone())),
                None => Ok(Access { authentication: authentication.clone(), alias: None }),
            };
        };
        let entry = self.catalog.find(target_name).filter(|entry| entry.is_served_by(self.portal_group_tag));
        let entry = entry.ok_or(LoginStatus::NotFound)?;
        if !entry.mask.admits_claim(initiator_name, self.peer) {
            return Err(LoginStatus::AuthorizationFailure.into());
        }
        if let Some(redirection) = &entry.redirection {
            return Err(Denial::Redirected(redirection.clone()));
        }
        Ok(Access { authentication: entry.authentication.clone(), alias: entry.alias.clone() })
    }
}
