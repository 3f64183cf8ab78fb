//! State that several parts of one world share.

use atomic_refcell::{AtomicRefCell, AtomicRefMut};
use std::sync::Arc;

/// One value and its users. The client's side of a world must be `Send`, so this is atomic, although one thread runs the
/// world. It is no lock: nobody else could ever release it, and it is taken some twenty times for each PDU.
#[derive(Debug)]
pub struct SharedCell<T>(Arc<AtomicRefCell<T>>);

impl<T> SharedCell<T> {
    /// The value, with one user.
    pub fn new(value: T) -> Self {
        Self(Arc::new(AtomicRefCell::new(value)))
    }

    /// The value, for as long as the guard lives. Taking it twice at a time is a panic.
    pub fn lock(&self) -> AtomicRefMut<'_, T> {
        self.0.borrow_mut()
    }
}

impl<T: Default> Default for SharedCell<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Clone for SharedCell<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
