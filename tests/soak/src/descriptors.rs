//! Room for thousands of sockets.

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Lets this process, and those that it starts, have so many descriptors.
///
/// # Errors
/// The system does not allow so many.
pub fn raise(needed: u64) -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(u64::MAX);
    ensure!(
        most >= needed,
        "{needed} descriptors are needed, and a process may have {most}: raise that (ulimit -Hn, LimitNOFILE=), or \
         ask for fewer sessions or connections"
    );
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("cannot raise the number of descriptors")
}
