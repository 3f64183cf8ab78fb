//! The `ropewalk` command.

fn main() {}
