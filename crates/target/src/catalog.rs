//! The targets of a server as a login sees them: who may use which, and what must be proven.

use crate::access::Mask;
use crate::chap::SecretError;
use crate::config::Config;
use crate::name::IscsiName;
use device::Visibility;
use pdu::LoginStatus;
use session::chap::Authentication;
use session::login::target::{Access, Denial, Directory};
use session::target::TargetRecord;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// All targets. The same for every shard, and constant.
#[derive(Debug)]
pub(crate) struct Catalog {
    entries: Vec<Entry>,
    discovery: Option<Arc<Authentication>>,
    portal_group_tag: u16,
}

#[derive(Debug)]
struct Entry {
    name: IscsiName,
    alias: Option<String>,
    mask: Mask,
    /// Who may use which of its units.
    unit_masks: HashMap<u16, Mask>,
    authentication: Option<Arc<Authentication>>,
    shard: usize,
}

/// Discovery sessions have no target; they all live on the shard that accepts.
pub(crate) const DISCOVERY_SHARD: usize = 0;

impl Catalog {
    /// Reads the secrets, and gives every target to one of `shards` in turn.
    pub(crate) fn new(config: &Config) -> Result<Self, SecretError> {
        let shards = config.shards();
        let entry = |(index, target): (usize, &crate::TargetConfig)| {
            Ok(Entry {
                name: target.name.clone(),
                alias: target.alias.clone(),
                mask: target.mask.clone(),
                unit_masks: target.luns.iter().map(|lun| (lun.number, lun.mask.clone())).collect(),
                authentication: target.chap.as_ref().map(authentication).transpose()?,
                shard: index % shards,
            })
        };
        Ok(Self {
            entries: config.targets.iter().enumerate().map(entry).collect::<Result<_, _>>()?,
            discovery: config.discovery.chap.as_ref().map(authentication).transpose()?,
            portal_group_tag: config.portal_group_tag,
        })
    }

    pub(crate) fn portal_group_tag(&self) -> u16 {
        self.portal_group_tag
    }

    /// Where the sessions of a target live. An empty name is discovery's.
    pub(crate) fn shard_of(&self, target_name: &str) -> usize {
        self.find(target_name).map_or(DISCOVERY_SHARD, |entry| entry.shard)
    }

    fn find(&self, target_name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name.as_str().eq_ignore_ascii_case(target_name))
    }
}

impl Visibility for Catalog {
    fn shows_unit(&self, initiator_name: &str, address: IpAddr, target_name: &str, number: u16) -> bool {
        let masks = self.find(target_name).map(|entry| &entry.unit_masks);
        masks.and_then(|masks| masks.get(&number)).is_some_and(|mask| mask.admits(initiator_name, address))
    }

    fn targets(
        &self,
        initiator_name: &str,
        address: IpAddr,
        portal: SocketAddr,
        only: Option<&str>,
    ) -> Vec<TargetRecord> {
        let portal = SocketAddr::new(portal.ip().to_canonical(), portal.port());
        let wanted = |entry: &&Entry| {
            let named = only.is_none_or(|name| entry.name.as_str().eq_ignore_ascii_case(name));
            named && entry.mask.admits(initiator_name, address)
        };
        let record = |entry: &Entry| TargetRecord {
            target_name: entry.name.to_string(),
            target_addresses: vec![format!("{portal},{}", self.portal_group_tag)],
        };
        self.entries.iter().filter(wanted).map(record).collect()
    }
}

fn authentication(chap: &crate::Chap) -> Result<Arc<Authentication>, SecretError> {
    Ok(Arc::new(chap.credentials()?.into()))
}

/// What the catalog says to a login from one address.
pub(crate) struct Visitor<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) peer: IpAddr,
}

impl Directory for Visitor<'_> {
    fn access(&self, initiator_name: &str, target_name: Option<&str>) -> Result<Access, Denial> {
        let Some(target_name) = target_name else {
            return Ok(Access { authentication: self.catalog.discovery.clone(), alias: None });
        };
        let entry = self.catalog.find(target_name).ok_or(LoginStatus::NotFound)?;
        if !entry.mask.admits(initiator_name, self.peer) {
            return Err(LoginStatus::AuthorizationFailure.into());
        }
        Ok(Access { authentication: entry.authentication.clone(), alias: entry.alias.clone() })
    }
}
