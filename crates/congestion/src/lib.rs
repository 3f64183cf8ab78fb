//! TCP congestion controls of our own on an unmodified kernel, and ensembles: connections that share one congestion state.
//!
//! The controls are BPF programs (`bpf/rw_*.bpf.c`). Root [`load`]s them; from then on any process chooses them by their
//! names, as it chooses the kernel's own ([`Offered`]), in every network namespace, until they are [`unload`]ed. A process
//! names the group of a connection by [`name_group`], before it chooses a control with groups; [`groups`] shows all,
//! and [`order`] changes how one behaves. A [`Recorder`] shows what the controls are told and do.
//!
//! Without the Cargo feature `bpf`, nothing can be loaded, and of controls that others have loaded those with groups are not
//! used.

#![forbid(unsafe_code)]

mod choice;
mod control;
mod error;
mod group;
#[cfg(feature = "bpf")]
mod kernel;
#[cfg(not(feature = "bpf"))]
#[path = "kernel_without_bpf.rs"]
mod kernel;
mod kernel_support;
#[cfg(feature = "bpf")]
mod layout;
mod offered;
mod record;
#[cfg(feature = "bpf")]
mod recorder;

/// Whether this build can load controls: whether it has the Cargo feature `bpf`.
pub const CAN_LOAD: bool = cfg!(feature = "bpf");

pub use choice::{InvalidChoice, check, parse};
pub use control::Control;
pub use error::Error;
pub use group::{Group, GroupKey};
#[cfg(not(feature = "bpf"))]
pub use kernel::Recorder;
pub use kernel::{groups, has_group, is_open_to_all, load, loaded, name_group, order, unload};
pub use kernel_support::{Lack, lack};
pub use offered::Offered;
pub use policy::law::{GroupTerms, InvalidTerms};
pub use record::{GroupState, Record, Recording};
#[cfg(feature = "bpf")]
pub use recorder::Recorder;
