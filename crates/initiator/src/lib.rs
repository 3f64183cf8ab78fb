//! An asynchronous iSCSI initiator with many connections (RFC 7143).
//!
//! A [`Session`] is one target, reached over as many TCP connections as configured: in one iSCSI session as far
//! as the target allows (MC/S), then in further sessions. A [`Lun`] is one of its disks; it reads and writes
//! owned buffers, and is a [`block::Backend`] too. [`discover`] asks a portal for targets.
//!
//! ```no_run
//! # async fn example() -> Result<(), ropewalk_initiator::Error> {
//! use ropewalk_initiator::{Config, Session, Url};
//!
//! let url: Url = "iscsi://192.0.2.1/iqn.2026-11.com.example:disk/0".parse()?;
//! let session = Session::connect(&url, Config::default()).await?;
//! let lun = session.lun(url.lun).await?;
//! let first = lun.read(0, 4096).await?;
//! lun.write(4096, first, false).await?;
//! lun.flush().await?;
//! session.close().await
//! # }
//! ```
//!
//! # Rules that hold whatever happens to connections
//! * A command is sent again only if that is safe: [`nexus::initiator::Retry`].
//! * No two writes to the same blocks are under way together: [`nexus::initiator::WriteFence`].
//! * A path carries I/O only to units that it was shown to lead to: [`nexus::initiator::accept_path`].
//! * A flush that succeeds covers every write answered before it, or says that it does not: [`Lun::flush`].

#![forbid(unsafe_code)]

mod backend;
mod config;
mod connect;
mod credentials;
mod discovery;
mod driver;
mod error;
mod extents;
mod isid;
mod lun;
mod probe;
mod reconnect;
mod replacement;
mod report;
mod session;
mod supervisor;
mod unit;
mod url;

pub use ::nexus::initiator::Generation;
pub use ::session::chap::{Algorithms, Credentials};
pub use config::Config;
pub use credentials::{CredentialsError, credentials_from_environment, credentials_from_file};
pub use discovery::{TargetRecord, discover};
pub use driver::OPERATIONS_MAX;
pub use error::{Error, LoginError, NetworkError, TargetError, UsageError};
pub use lun::{Compared, Executed, Lun, Transfer};
pub use reconnect::Reconnect;
pub use report::{ConnectionReport, PathReport, PathState, Report};
pub use session::Session;
pub use unit::Unit;
pub use url::{DEFAULT_PORT, InvalidUrl, Portal, Url};
