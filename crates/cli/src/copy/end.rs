//! SRC and DST as they are written, and as they are opened.

use super::not_begun;
use crate::exit::Failed;
use crate::remote::{Connected, Connecting, Portals, Remote, is_url};
use crate::reservation;
use block::Engine;
use initiator::{InvalidUrl, Url};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use transfer::{Destination, Identity, Source};

/// One end of a copy on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Url(Url),
    /// Standard input or output.
    Stream,
    Path(PathBuf),
}

impl FromStr for End {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        match text {
            "-" => Ok(Self::Stream),
            _ if is_url(text) => text.parse().map(Self::Url),
            _ => Ok(Self::Path(text.into())),
        }
    }
}

/// An end, and the remote disk behind it.
pub(super) struct Opened<E> {
    pub(super) end: E,
    pub(super) remote: Option<Remote>,
}

impl End {
    pub(super) async fn open_source(
        &self,
        connecting: &Connecting,
        portals: Portals,
        engine: &Engine,
        connected: &Connected,
    ) -> Result<Opened<Source>, Failed> {
        Ok(match self {
            Self::Url(url) => {
                let remote = connecting.begin(url, portals, connected).await?;
                let end = Source::device(identity(&remote), Arc::new(remote.lun.clone()));
                Opened { end, remote: Some(remote) }
            }
            Self::Stream => Opened { end: Source::standard_input().map_err(not_begun)?, remote: None },
            Self::Path(path) => Opened { end: Source::path(path, engine).map_err(not_begun)?, remote: None },
        })
    }

    pub(super) async fn open_destination(
        &self,
        connecting: &Connecting,
        engine: &Engine,
        connected: &Connected,
    ) -> Result<Opened<Destination>, Failed> {
        Ok(match self {
            Self::Url(url) => {
                let remote = connecting.begin(url, Portals::Given, connected).await;
                let remote = remote.map_err(|error| reservation::refused_if_reserved(url, error))?;
                let end = Destination::device(identity(&remote), Arc::new(remote.lun.clone()));
                Opened { end, remote: Some(remote) }
            }
            Self::Stream => Opened { end: Destination::standard_output().map_err(not_begun)?, remote: None },
            Self::Path(path) => {
                Opened { end: Destination::path(path, engine).map_err(not_begun)?, remote: None }
            }
        })
    }
}

fn identity(remote: &Remote) -> Identity {
    let designator = remote.lun.unit().designator.as_ref().map(ToString::to_string);
    Identity { name: remote.url.to_string(), designator }
}
