//! A [`block::Backend`] as a disk of this machine.
//!
//! Two ways lead to a [`Disk`]: an NBD server on a unix socket ([`nbd::Server`]), for QEMU, nbdcopy and Linux's own NBD
//! client, and a file in a FUSE mount ([`DiskFile`]), which Linux's loop driver turns into a block device
//! ([`LoopDevice`]). Both speak in Linux's error numbers, keep what the backend promises about flushes, and pass on as
//! many operations at once as their user has.

#![forbid(unsafe_code)]

mod disk;
mod disk_file;
mod loop_device;
pub mod nbd;
mod start;

pub use disk::Disk;
pub use disk_file::{DiskFile, Mounted, unmount, unmount_at_once};
pub use loop_device::{LoopDevice, LoopError};
