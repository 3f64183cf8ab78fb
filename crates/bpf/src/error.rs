//! Why programs are not in the kernel.

use libbpf_rs::{Error, ErrorKind};
use std::io;

/// Why programs could not be loaded, or their maps not used.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// The process lacks root's rights, or `CAP_BPF` and others, in the initial user namespace.
    #[error("BPF programs and their maps require root's rights: {0}")]
    NoRights(#[source] Error),
    /// The kernel refused the programs, because it lacks a feature that they need.
    #[error("the kernel refuses BPF programs: {0}")]
    Refused(#[source] Error),
    /// A resource is missing.
    #[error("BPF programs cannot be used: {0}")]
    System(#[source] io::Error),
}

impl From<io::Error> for BpfError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NoRights(error.into()),
            _ => Self::System(error),
        }
    }
}

impl From<Error> for BpfError {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::PermissionDenied => Self::NoRights(error),
            _ => Self::Refused(error),
        }
    }
}

/// A map that the programs lack.
pub(crate) fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("the programs have no map {name}"))
}
