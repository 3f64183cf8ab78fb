//! The initiator's half of every command, without sockets, clocks or a runtime.
//!
//! A [`Target`] uses as many connections as configured: in one iSCSI session for each portal group as far as the target
//! allows (MC/S), then in further sessions. A [`Lun`] is one of its disks; it reads and writes owned buffers, and is a
//! [`block::Backend`] too. [`discover`] asks a portal for its targets. All of them run in an [`Environment`]: a
//! [`Host`], which polls tasks and knows the time, and a network to [`Dial`]. The `initiator` crate provides one on
//! tokio and TCP, the simulator a virtual one.
//!
//! # Rules that hold whatever happens to connections
//! * A command is sent again only if that is safe: [`retry::Retry`].
//! * Two writes to the same blocks are never outstanding together: [`write_fence::WriteFence`].
//! * A path carries I/O only to units that it was proven to lead to: [`path_acceptance::accept_path`].
//! * A successful flush covers every write answered before it; otherwise the flush reports the loss: [`Lun::flush`].

#![forbid(unsafe_code)]

mod backend;
mod beginning;
mod config;
mod discovery;
mod driver;
mod durability;
mod early_dials;
mod error;
mod extents;
mod growth;
mod host;
mod isid;
mod layout;
mod login;
mod lun;
mod memory;
mod path_acceptance;
mod path_id;
mod portal_group;
mod probe;
mod reconnect;
mod replacement;
mod report;
mod reservation;
mod retry;
mod supervisor;
mod target;
mod unit;
mod url;
mod write_fence;

pub use ::session::chap::{Algorithms, Credentials};
pub use ::session::parameters::{LaneRole, SplitLanes, UnknownSplit};
pub use config::{Config, Connections, Tuning};
pub use discovery::{TargetRecord, discover};
pub use driver::OPERATIONS_MAX;
pub use durability::Generation;
pub use error::{Error, LoginError, NetworkError, TargetError, UsageError};
pub use host::{Dial, Dialed, Environment, Host, Observe};
pub use lun::{Compared, Executed, Lun, Reset, Transfer};
pub use reconnect::Reconnect;
pub use report::{ConnectionReport, PathReport, PathState, Report};
pub use reservation::{ReservationHolder, Reserved};
pub use target::Target;
pub use unit::Unit;
pub use url::{DEFAULT_PORT, InvalidUrl, Portal, Url};
