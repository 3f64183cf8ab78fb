//! What can fail.

use crate::{Control, InvalidChoice, Lack};
use std::io;

/// Why a congestion control cannot be loaded or unloaded, or a connection has no group.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This program was built without the Cargo feature `bpf`.
    #[error(
        "this program was built without BPF: \"make build\", where clang, libelf and zlib are installed, builds it with BPF"
    )]
    NotBuilt,
    /// The kernel is too old, or was built without what is needed.
    #[error(transparent)]
    Lacking(#[from] Lack),
    /// Someone has loaded it.
    #[error("{} is loaded already", .0.name())]
    Loaded(Control),
    /// Groups under another control behave so.
    #[error(transparent)]
    Choice(#[from] InvalidChoice),
    /// Nobody has loaded it, or it was unloaded.
    #[error("{name} is not loaded: \"ropewalk cc load {name}\", as root, loads it", name = .0.name())]
    NotLoaded(Control),
    /// The kernel or its file system refuses.
    #[error("cannot {what} {name}: {problem}", name = .control.name())]
    Refused {
        /// What was to be done.
        what: &'static str,
        /// With which control.
        control: Control,
        /// What is wrong.
        problem: String,
    },
    /// The file system by which programs are found is missing.
    #[error("cannot mount a BPF file system at /sys/fs/bpf: {0}")]
    NoFileSystem(#[source] io::Error),
    /// What is loaded cannot be found, its groups or records cannot be read, or a socket cannot join a group.
    #[error("cannot {what}: {problem}")]
    Groups {
        /// What was to be done.
        what: &'static str,
        /// What is wrong.
        problem: String,
    },
}
