//! Sockets and the connection driver that both ends of a session use.
