//! The disk that is to be attached.

use super::place::Name;
use crate::local;
use crate::remote::{Connected, Connecting, Portals, is_url};
use attach::Disk;
use initiator::{Lun, Url};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use target::{LunSpec, Medium};

/// A disk, as it is written on the command line.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Remote(Url),
    Local { text: String, spec: Box<LunSpec> },
}

/// A disk that is open.
pub(crate) struct Opened {
    pub(crate) disk: Disk,
    /// A name for it, if nobody gives another.
    pub(crate) name: Name,
    /// The same for the same disk, found in the same place: targets are known to give several disks one designator. What
    /// is in this process's memory is another disk each time.
    pub(crate) identity: Option<String>,
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if is_url(text) {
            return text.parse().map(Self::Remote).map_err(|error: initiator::InvalidUrl| error.to_string());
        }
        let spec: LunSpec = text.parse().map_err(|error: target::InvalidLunSpec| {
            format!("{error}; a remote disk is iscsi://HOST/TARGET-IQN/LUN")
        })?;
        Ok(Self::Local { text: text.to_owned(), spec: Box::new(spec) })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(url) => url.fmt(formatter),
            Self::Local { text, .. } => text.fmt(formatter),
        }
    }
}

impl Source {
    pub(crate) async fn open(
        &self,
        connecting: &Connecting,
        read_only: bool,
        connected: &Connected,
    ) -> anyhow::Result<Opened> {
        match self {
            Self::Remote(url) => {
                let remote = connecting.open(url, Portals::Given, connected).await?;
                let name = name_of(url, &remote.lun);
                let identity = format!("{} {} {}", url.portal, url.target_name, url.lun);
                let disk = Disk::new(Arc::new(remote.lun), read_only);
                Ok(Opened { disk, name, identity: Some(identity) })
            }
            Self::Local { text, spec } => {
                let mut spec = spec.clone();
                spec.read_only |= read_only;
                let backend = spec.open(&local::engine()?)?;
                let name = Name::like(text.split(',').next().unwrap_or(text));
                let identity = match &spec.medium {
                    Medium::Ram { .. } => None,
                    Medium::File { path, .. } => {
                        path.canonicalize().ok().map(|path| path.display().to_string())
                    }
                };
                Ok(Opened { disk: Disk::new(backend, read_only), name, identity })
            }
        }
    }
}

/// The disk's designator, the same over every path; otherwise where it was found.
fn name_of(url: &Url, lun: &Lun) -> Name {
    match &lun.unit().designator {
        Some(designator) => Name::like(&designator.to_string()),
        None => Name::like(&format!("{}-{}", url.target_name, url.lun)),
    }
}
