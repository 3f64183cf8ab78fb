//! An iSCSI target.
//!
//! A [`Server`] serves the targets of a [`Config`]. It accepts (`listener`), lets the connection log in
//! (`login_task`), hands it to the shard of its target, where it finds its session (`admission`), and carries
//! it (`connection_task`). What a session asks for is done in `session_driver` and `command`: a command goes
//! through its unit's task set to a [`block::Backend`], and its answer back the same way.
//!
//! A target belongs to one shard, with all its logical units and sessions: nothing of a command's path needs a
//! lock, and what one session does to another (resets, cleared task sets) stays on one thread.

mod access;
mod admission;
mod catalog;
mod chap;
mod command;
mod compare_and_write;
mod config;
mod connection_task;
mod counters;
mod flush;
mod get_lba_status;
mod listener;
mod logical_unit;
mod login_task;
mod lun_spec;
mod memory;
mod name;
mod pace_timer;
mod read;
mod server;
mod session_driver;
mod shard;
mod shutdown;
mod size;
mod target_node;
mod task_management;
mod unmap;
mod verify;
mod write;
mod write_same;

pub use access::Mask;
pub use chap::{Chap, Credential, SecretError};
pub use config::{
    Config, DigestUse, DiscoveryConfig, ISCSI_PORT, InvalidConfig, Limits, LunConfig, Negotiation,
    SocketConfig, TargetConfig,
};
pub use counters::Counters;
pub use logical_unit::OpenError;
pub use lun_spec::{InvalidLunSpec, LUN_OPTIONS, LunSpec, Medium, NumberedLunSpec, Pace};
pub use name::{InvalidIscsiName, IscsiName};
pub use server::{Server, StartError};
pub use shutdown::ShutdownReport;
pub use size::{ByteSize, InvalidByteSize};
