//! Processes that end with the one that started them, however that ends.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::io;

/// Makes this process die when the thread of `parent` dies that started it. To be called between fork and exec, when
/// nothing more changes the user or the capabilities of this process: that would take it back (prctl(2)).
///
/// # Errors
/// If `parent` has died already.
pub(crate) fn die_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before it was asked to tell.
    let is_orphan = getppid() != Some(parent);
    if is_orphan { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
}
