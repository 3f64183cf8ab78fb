//! The controls in the kernel, by a BPF file system.

use crate::{Control, Error, Group, Offered, check, kernel_support, layout};
use bpf::{BpfError, Compiled, MapCore as _, MapFlags, MapHandle, Pinned};
use framing::Congestion;
use policy::law::GroupTerms;
use rustix::mount::{MountFlags, mount};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Where BPF file systems are, by custom.
const FILE_SYSTEM: &str = "/sys/fs/bpf";

/// Our folder in it.
const FOLDER: &str = "/sys/fs/bpf/ropewalk";

/// Maps that all controls have in common, and who may use them. Everybody may name the groups of their own sockets.
const SHARED: [(&str, u32); 5] =
    [(GROUPS, 0o644), (MEMBERSHIPS, 0o666), (ORDERS, 0o600), ("recording", 0o600), ("records", 0o600)];

const GROUPS: &str = "groups";
const MEMBERSHIPS: &str = "memberships";
const ORDERS: &str = "orders";

/// Loads a control into the kernel, for all users and network namespaces, until it is unloaded or the machine restarts.
///
/// # Errors
/// If it is loaded already, or the kernel refuses it.
pub fn load(control: Control) -> Result<(), Error> {
    if loaded()?.contains(&control) {
        return Err(Error::Loaded(control));
    }
    if let Some(lack) = kernel_support::lack() {
        return Err(lack.into());
    }
    mount_file_system().map_err(Error::NoFileSystem)?;
    let refused = |problem: String| Error::Refused { what: "load", control, problem };
    let names = SHARED.map(|(name, _)| name);
    let ours = ours();
    ours.load(control.name(), compiled(control), &names).map_err(|error| refused(explained(&error)))?;
    for (name, mode) in SHARED {
        let file = ours.map_file(name);
        if file.exists() {
            fs::set_permissions(file, Permissions::from_mode(mode))
                .map_err(|error| refused(error.to_string()))?;
        }
    }
    Ok(())
}

/// What helps where the kernel's own word does not.
fn explained(error: &BpfError) -> String {
    match error {
        BpfError::Refused(source) if source.kind() == bpf::ErrorKind::AlreadyExists => {
            format!("another congestion control of this name is loaded ({source})")
        }
        error => error.to_string(),
    }
}

/// Whether other users than root can find what is loaded. Some systems close the BPF file system to them.
#[must_use]
pub fn is_open_to_all() -> bool {
    fs::metadata(FILE_SYSTEM).is_ok_and(|folder| folder.permissions().mode() & 0o001 != 0)
}

/// Takes a control out of those that can be chosen. Connections that use it keep it.
///
/// # Errors
/// If it is not loaded, or this user may not.
pub fn unload(control: Control) -> Result<(), Error> {
    if !loaded()?.contains(&control) {
        return Err(Error::NotLoaded(control));
    }
    ours().unload(control.name()).map_err(|error| Error::Refused {
        what: "unload",
        control,
        problem: error.to_string(),
    })?;
    wait_until_gone(control);
    Ok(())
}

/// The kernel takes a control out some time after its last name is gone. Whoever loads or lists it next would still find it.
fn wait_until_gone(control: Control) {
    const LOOK: Duration = Duration::from_millis(1);
    const LOOKS_MAX: u32 = 1000;
    for _ in 0..LOOKS_MAX {
        if !Offered::here().is_available(control.name()) {
            return;
        }
        thread::sleep(LOOK);
    }
}

/// The controls that [`load`] has loaded.
///
/// # Errors
/// If the folder cannot be read.
pub fn loaded() -> Result<Vec<Control>, Error> {
    let names = ours().loaded().map_err(|error| closed_or("look for what is loaded", &error.into()))?;
    Ok(names.iter().filter_map(|name| Control::named(name)).collect())
}

/// All groups that have members.
///
/// # Errors
/// If they cannot be read.
pub fn groups() -> Result<Vec<Group>, Error> {
    let mut groups: Vec<_> = groups_in_places()?.into_iter().map(|(_, group)| group).collect();
    groups.sort_by_key(|group| group.key);
    Ok(groups)
}

/// All groups, and where they are.
fn groups_in_places() -> Result<Vec<(u32, Group)>, Error> {
    let failed = |error: BpfError| closed_or("read the groups", &error);
    if !ours().map_file(GROUPS).exists() {
        return Ok(Vec::new());
    }
    let map = ours().map_to_read(GROUPS).map_err(failed)?;
    if map.value_size() != layout::GROUP_BYTES {
        return Err(groups_error("read the groups", &OtherVersion));
    }
    let mut groups = Vec::new();
    for index in 0..map.max_entries() {
        let bytes = map.lookup(&index.to_ne_bytes(), MapFlags::LOCK).map_err(|error| failed(error.into()))?;
        groups.extend(bytes.and_then(|bytes| layout::group(&bytes)).map(|group| (index, group)));
    }
    Ok(groups)
}

/// Sets the terms of all groups of this number, over what the owners of their connections want, until they have no
/// connections. Each follows when one of its connections sends again, or is acknowledged, in the next round trip. Returns
/// how many they are: users, network namespaces and local addresses have groups of their own.
///
/// # Errors
/// If this user may not, nothing with groups is loaded, or a group's control takes no such terms.
pub fn order(group: u64, terms: GroupTerms) -> Result<usize, Error> {
    let failed = |error: BpfError| groups_error("change the terms of a group", &error);
    let mut groups = groups_in_places()?;
    groups.retain(|(_, found)| found.key.group == group);
    for (_, found) in &groups {
        check(&Congestion { name: found.key.control.name().to_owned(), terms })?;
    }
    let orders = ours().map(ORDERS).map_err(failed)?;
    for (place, _) in &groups {
        let updated = orders.update(&place.to_ne_bytes(), &layout::order(group, terms), MapFlags::ANY);
        updated.map_err(|error| failed(error.into()))?;
    }
    Ok(groups.len())
}

/// Names the group of a socket whose congestion control is chosen afterwards: its number among those of this user in
/// this network namespace. Of a socket that has one, it changes the terms, not the number.
///
/// # Errors
/// If no control with groups is loaded.
pub fn name_group(socket: BorrowedFd<'_>, group: u64, terms: GroupTerms) -> Result<(), Error> {
    let failed = |error: BpfError| closed_or("name the group of a connection", &error);
    let memberships: MapHandle = ours().map(MEMBERSHIPS).map_err(failed)?;
    let socket = socket.as_raw_fd().to_ne_bytes();
    let before = memberships.lookup(&socket, MapFlags::ANY).map_err(|error| failed(error.into()))?;
    let place = before.as_deref().map_or(0, layout::place);
    memberships
        .update(&socket, &layout::membership(place, group, terms), MapFlags::ANY)
        .map_err(|error| failed(error.into()))
}

/// Whether a connected socket that was to have a group has it, or there was no room for one. `None` if it was to have none,
/// or if nobody can tell.
#[must_use]
pub fn has_group(socket: BorrowedFd<'_>) -> Option<bool> {
    // Other versions have not told.
    ours().map_to_read(GROUPS).ok().filter(|groups| groups.value_size() == layout::GROUP_BYTES)?;
    let memberships = ours().map(MEMBERSHIPS).ok()?;
    let membership = memberships.lookup(&socket.as_raw_fd().to_ne_bytes(), MapFlags::ANY).ok()?;
    membership.map(|membership| layout::place(&membership) != 0)
}

/// The maps were made by a program whose groups are laid out in another way.
#[derive(Debug, thiserror::Error)]
#[error(
    "another version of ropewalk has loaded the congestion controls: \"ropewalk cc unload\" and \"ropewalk cc load\" replace them"
)]
struct OtherVersion;

fn groups_error(what: &'static str, error: &dyn std::error::Error) -> Error {
    Error::Groups { what, problem: error.to_string() }
}

/// As [`groups_error`], of what every user may do where the file system is open to all.
fn closed_or(what: &'static str, error: &BpfError) -> Error {
    let is_closed = matches!(error, BpfError::NoRights(_)) && !is_open_to_all();
    if !is_closed {
        return groups_error(what, error);
    }
    let problem =
        format!("{FILE_SYSTEM} is closed to this user: \"chmod 711 {FILE_SYSTEM}\", as root, opens it");
    Error::Groups { what, problem }
}

pub(crate) fn ours() -> Pinned {
    Pinned::of(FOLDER)
}

fn compiled(control: Control) -> &'static Compiled {
    match control {
        Control::Bic => bpf::RW_BIC,
        Control::Fair => bpf::RW_FAIR,
        Control::Fast => bpf::RW_FAST,
        Control::Hstcp => bpf::RW_HSTCP,
        Control::Htcp => bpf::RW_HTCP,
        Control::Reno => bpf::RW_RENO,
        Control::Scalable => bpf::RW_SCALABLE,
        Control::Westwood => bpf::RW_WESTWOOD,
    }
}

/// Mounts the BPF file system where it is usual, if it is not there.
fn mount_file_system() -> io::Result<()> {
    const BPF_FS_MAGIC: u64 = 0xcafe_4a11;
    let there = rustix::fs::statfs(FILE_SYSTEM)?;
    if u64::try_from(there.f_type).is_ok_and(|kind| kind == BPF_FS_MAGIC) {
        return Ok(());
    }
    Ok(mount(
        "bpf",
        Path::new(FILE_SYSTEM),
        "bpf",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )?)
}
