//! State that several parts of one world share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One value and its users. The client's side of a world must be `Send`, so this is a lock, although one thread runs
/// the world and never waits for it.
#[derive(Debug)]
pub struct Common<T>(Arc<Mutex<T>>);

impl<T> Common<T> {
    /// The value, with one user.
    pub fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new(value)))
    }

    /// The value, for as long as the guard lives. Taking it twice at a time is a deadlock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Default for Common<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Clone for Common<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
