//! Copying disk images to and from remote LUNs, safely.

#![forbid(unsafe_code)]
