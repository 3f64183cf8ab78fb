//! Waits for a descriptor that is not a socket, such as an eventfd.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A duplicate of a descriptor, watched by the event loop of the thread that made this.
#[derive(Debug)]
pub struct ReadableFd(AsyncFd<OwnedFd>);

impl ReadableFd {
    /// Starts to watch, within a tokio runtime.
    ///
    /// # Errors
    /// The system has no descriptor left, or cannot watch this kind.
    pub fn new(descriptor: BorrowedFd<'_>) -> io::Result<Self> {
        let owned = descriptor.try_clone_to_owned()?;
        // SAFETY: an `OwnedFd` is open and always the same descriptor for as long as the `AsyncFd` owns it.
        Ok(Self(unsafe { AsyncFd::register_with_interest(owned, Interest::READABLE) }?))
    }

    /// Waits for new input since the last return. Read all of it then.
    ///
    /// # Errors
    /// The event loop ends.
    pub async fn readable(&self) -> io::Result<()> {
        self.0.readable().await?.clear_ready();
        Ok(())
    }
}
