//! The rules of the architecture, checked by the tests of this crate.
