//! Negotiation of text keys from a table of their rules (RFC 7143 §6.2, §13).
