//! What is left without BPF.

use crate::{Control, Error, Group, Recording};
use policy::law::GroupTerms;
use std::os::fd::BorrowedFd;

/// Loads a control into the kernel, for all users and network namespaces, until it is unloaded or the machine restarts.
///
/// # Errors
/// Always: nothing can be loaded.
pub fn load(_: Control) -> Result<(), Error> {
    Err(Error::NotBuilt)
}

/// Whether other users than root can find what is loaded.
#[must_use]
pub fn is_open_to_all() -> bool {
    true
}

/// Takes a control out of those that can be chosen. Connections that use it keep it.
///
/// # Errors
/// Always.
pub fn unload(_: Control) -> Result<(), Error> {
    Err(Error::NotBuilt)
}

/// The controls that [`load`] has loaded.
///
/// # Errors
/// None.
pub fn loaded() -> Result<Vec<Control>, Error> {
    Ok(Vec::new())
}

/// All groups that have members.
///
/// # Errors
/// Always.
pub fn groups() -> Result<Vec<Group>, Error> {
    Err(Error::NotBuilt)
}

/// Makes the groups of this number behave so.
///
/// # Errors
/// Always.
pub fn order(_: u64, _: GroupTerms) -> Result<usize, Error> {
    Err(Error::NotBuilt)
}

/// Names the group of a socket whose congestion control is chosen afterwards: its number among those of this user in
/// this network namespace.
///
/// # Errors
/// Always.
pub fn name_group(_: BorrowedFd<'_>, _: u64, _: GroupTerms) -> Result<(), Error> {
    Err(Error::NotBuilt)
}

/// Whether a connected socket that was to have a group has it. `None`: nobody can tell.
#[must_use]
pub fn has_group(_: BorrowedFd<'_>) -> Option<bool> {
    None
}

/// A running record of what the controls are told and do.
#[derive(Debug)]
pub enum Recorder {}

impl Recorder {
    /// Starts to record connections of the calling thread's network namespace.
    ///
    /// # Errors
    /// Always.
    pub fn start(_: Option<u16>) -> Result<Self, Error> {
        Err(Error::NotBuilt)
    }

    /// Ends the record and returns it.
    ///
    /// # Errors
    /// None.
    pub fn stop(self) -> Result<Recording, Error> {
        match self {}
    }
}
