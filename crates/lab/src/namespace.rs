//! A network namespace, owned by a file descriptor.

use crate::parent_death::die_with;
use rustix::process::getpid;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

/// A network namespace without a name. It lives as long as something refers to it: this value or a copy of it, or a
/// thread, process or socket inside. The end of the process thus removes it.
#[derive(Clone, Debug)]
pub struct Namespace {
    descriptor: Arc<OwnedFd>,
}

impl Namespace {
    /// Makes a namespace, which contains only a loopback interface that is down.
    ///
    /// # Errors
    /// The kernel's own; without the rights, "operation not permitted" (see [`Rights`](crate::Rights)).
    pub fn new() -> io::Result<Self> {
        let descriptor = on_a_thread(|| {
            leave_network_namespace()?;
            Ok(OwnedFd::from(File::open("/proc/thread-self/ns/net")?))
        })?;
        Ok(Self { descriptor: Arc::new(descriptor) })
    }

    /// Calls `task` on its own thread inside. Sockets that it makes stay inside, wherever they are used.
    ///
    /// # Errors
    /// If the namespace could not be entered. Then `task` is not called.
    ///
    /// # Panics
    /// If `task` does.
    pub fn run<T: Send>(&self, task: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_a_thread(|| {
            self.enter()?;
            Ok(task())
        })
    }

    /// Makes `command` start inside, and its process die with the thread that starts it. Start it from a thread that
    /// lives as long as the process is needed; then nothing is left even after a crash.
    pub fn put(&self, command: &mut Command) {
        let namespace = self.clone();
        let parent = getpid();
        let before_exec = move || {
            namespace.enter()?;
            die_with(parent)
        };
        // SAFETY: between fork and exec only system calls are made, without allocation or locks.
        unsafe { command.pre_exec(before_exec) };
    }

    /// Moves the calling thread inside, for good.
    pub(crate) fn enter(&self) -> io::Result<()> {
        move_into_link_name_space(self.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Moves the calling thread into a new network namespace.
pub(crate) fn leave_network_namespace() -> io::Result<()> {
    // SAFETY: a network namespace of its own does not affect the memory or the descriptors of a thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
    Ok(())
}

/// Runs a task on a thread of its own. Namespaces belong to threads, so the end of the thread reverts the change.
pub(crate) fn on_a_thread<T: Send>(task: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let outcome =
        thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, task).map(ScopedJoinHandle::join))?;
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
