//! What tuners make of paths.

mod apt2010;
mod bbr;
mod later_sessions;
mod model;
mod number_of_connections;
mod pool;
