//! An observer of all connections of a driver.

use framing::ConnectionObserver;
use session::parameters::Established;
use std::fmt::Debug;
use std::os::fd::BorrowedFd;

/// Receives every connection after its login.
pub trait Observer: Debug + Send + Sync {
    /// A connection begins on `socket`, which may be queried for the kernel's measurements, and duplicated for later
    /// queries. The returned observer receives the connection's events and is dropped with it.
    fn connected(&self, socket: BorrowedFd<'_>, established: &Established) -> Box<dyn ConnectionObserver>;
}
