//! The default initiator name of this machine.

/// A name that stays the same on one machine and differs between machines, so that a target can tell them apart.
/// Characters that an iSCSI name may not contain are omitted (RFC 7143 §4.2.7).
pub(crate) fn of_this_machine() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let allowed = |letter: &char| letter.is_ascii_alphanumeric() || "-.".contains(*letter);
    let host: String = host.to_lowercase().chars().filter(allowed).take(64).collect();
    let host = if host.is_empty() { "initiator" } else { &host };
    format!("iqn.2026-11.io.github.ropewalk:{host}")
}
