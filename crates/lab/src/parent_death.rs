//! Makes processes end with the one that started them.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::io;

/// Makes this process die with the thread of `parent` that started it. Call it between fork and exec, when nothing
/// later changes the user or the capabilities of this process, which would revert it (prctl(2)).
///
/// # Errors
/// If `parent` has died already.
pub(crate) fn die_with(parent: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before this request.
    let is_orphan = getppid() != Some(parent);
    if is_orphan { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
}
