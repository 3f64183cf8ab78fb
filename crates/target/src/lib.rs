//! An iSCSI target.
//!
//! A [`Server`] serves the targets of a [`Config`]. It accepts (`listener`), lets the connection log in
//! (`login_task`), hands it to the shard of its target, where it finds its session (`arrival`), and carries
//! it (`connection_task`). What a session asks for is done in the `device` crate, on the shard to which the target
//! belongs.

mod access;
mod arrival;
mod catalog;
mod chap;
mod config;
mod connection_task;
mod counters;
mod listener;
mod login_task;
mod lun_spec;
mod name;
mod opening;
mod pace_timer;
mod server;
mod shard;
mod shutdown;
mod size;
mod tokio_host;

pub use access::Mask;
pub use chap::{Chap, Credential, SecretError};
pub use config::{
    Config, DigestUse, DiscoveryConfig, ISCSI_PORT, InvalidConfig, Limits, LunConfig, Negotiation,
    SocketConfig, TargetConfig,
};
pub use counters::Counters;
pub use lun_spec::{InvalidLunSpec, LUN_OPTIONS, LunSpec, Medium, NumberedLunSpec, Pace};
pub use name::{InvalidIscsiName, IscsiName};
pub use opening::OpenError;
pub use server::{Server, StartError};
pub use shutdown::ShutdownReport;
pub use size::{ByteSize, InvalidByteSize};
