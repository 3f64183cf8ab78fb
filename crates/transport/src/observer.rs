//! An observer of all connections of a driver.

use framing::ConnectionObserver;
use session::parameters::Established;
use std::fmt::Debug;
use std::os::fd::BorrowedFd;

/// Is told of every connection whose login is done.
pub trait Observer: Debug + Send + Sync {
    /// A connection begins, on `socket`, which may be asked for what the kernel knows of it, and duplicated for later
    /// questions. What is returned is told of the connection, and dropped with it.
    fn connected(&self, socket: BorrowedFd<'_>, established: &Established) -> Box<dyn ConnectionObserver>;
}
