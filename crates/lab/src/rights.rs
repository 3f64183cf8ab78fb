//! The rights to make network namespaces: root's, or those of root in a user namespace.

use crate::namespace::{leave_network_namespace, on_a_thread};
use crate::parent_death::die_with;
use rustix::process::{getegid, geteuid, getpid};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The rights by which this process makes network namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rights {
    /// Root's on this machine: nothing is refused.
    Root,
    /// Root's in a user namespace: without priority over other processes, and without socket buffers beyond
    /// `net.core.rmem_max`. At high rates more runs are INVALID.
    UserNamespace,
}

/// This process may not make network namespaces.
#[derive(Debug, thiserror::Error)]
#[error("making a network namespace: {source}; it takes root's rights (CAP_SYS_ADMIN), or {alternative}")]
pub struct NoRights {
    source: io::Error,
    alternative: String,
}

impl Rights {
    /// The rights of this process.
    ///
    /// # Errors
    /// If it has none. It may have some after a restart by [`in_user_namespace`].
    pub fn of_this_process() -> Result<Self, NoRights> {
        match on_a_thread(leave_network_namespace) {
            Ok(()) if is_in_user_namespace() => Ok(Self::UserNamespace),
            Ok(()) => Ok(Self::Root),
            Err(source) => Err(NoRights { source, alternative: alternative() }),
        }
    }
}

/// Makes the process of `command` root of its own user namespace, in which it may make network namespaces. If that is
/// forbidden, `command` fails to start, or its process has no [`Rights`]; their error has the reason. The process dies
/// with the thread that starts it, because a lab must not outlive its command.
pub fn in_user_namespace(command: &mut Command) {
    let uid_map = format!("0 {} 1", geteuid().as_raw());
    let gid_map = format!("0 {} 1", getegid().as_raw());
    let parent = getpid();
    let before_exec = move || {
        // SAFETY: before exec a process has one thread, to whose memory and descriptors this does nothing.
        unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
        // A process that may not change its groups may map its own (user_namespaces(7)).
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", &uid_map)?;
        fs::write("/proc/self/gid_map", &gid_map)?;
        die_with(parent)
    };
    // SAFETY: between fork and exec only system calls are made; short paths of `fs::write` stay on the stack.
    unsafe { command.pre_exec(before_exec) };
}

/// The first user namespace maps every number to itself.
fn is_in_user_namespace() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().ne(["0", "0", "4294967295"])
}

/// A way to work without root, and the obstacle on this machine.
fn alternative() -> String {
    let forbidden = [
        ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns is 1",
        ),
    ];
    let reasons = forbidden
        .iter()
        .filter(|(file, value, _)| fs::read_to_string(file).is_ok_and(|text| text.trim() == *value));
    let reasons: Vec<&str> = reasons.map(|(_, _, reason)| *reason).collect();
    match reasons.is_empty() {
        true => "a user namespace".to_owned(),
        false => format!("a user namespace, which is forbidden here: {}", reasons.join(", ")),
    }
}
