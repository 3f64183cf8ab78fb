//! An iSCSI target.
//!
//! A [`Server`] serves the targets of a [`Config`]. It accepts a connection (`listener`), logs it in (`login_task`),
//! hands it to the shard of its target, which finds its session (`arrival`), and carries it. The
//! `device` crate executes the session's commands, on the shard of the target.

mod access;
mod arrival;
mod catalog;
mod chap;
mod config;
mod counters;
mod failed_logins;
mod listener;
mod login_task;
mod lun_spec;
mod name;
mod observers;
mod opening;
mod pace_timer;
mod portal_group;
mod redirect;
mod refusals;
mod server;
mod shard;
mod shutdown;
mod size;
mod state_directory;
mod tokio_host;

pub use access::Mask;
pub use chap::{Chap, ChapAlgorithms, Credential, InlineSecret, SecretError};
pub use config::{
    Config, DigestUse, DiscoveryConfig, ISCSI_PORT, InvalidConfig, Limits, LunConfig, Negotiation,
    SocketConfig, TargetConfig,
};
pub use counters::Counters;
pub use lun_spec::{InvalidLunSpec, LUN_OPTIONS, LunSpec, Medium, NumberedLunSpec, Pace};
pub use name::IscsiName;
pub use observers::Observers;
pub use opening::{OpenError, OpenFailure};
pub use portal_group::PortalGroupConfig;
pub use redirect::{InvalidRedirect, Redirect};
pub use server::{Server, StartError};
pub use session::name::InvalidName as InvalidIscsiName;
pub use shutdown::ShutdownReport;
pub use size::{ByteSize, InvalidByteSize};
pub use state_directory::StateError;
