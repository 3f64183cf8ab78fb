//! Block backends with owned, aligned buffers.
