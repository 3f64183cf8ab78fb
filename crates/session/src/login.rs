//! Login: a connection before it belongs to a session (RFC 7143 §6.3).
