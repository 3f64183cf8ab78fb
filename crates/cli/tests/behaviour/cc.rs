//! Congestion controls of our own, from the command line.

use crate::world::{Folder, MIB, Server, TARGET, noise, ropewalk, run, wait_for_line};
use requirement::{Need, skip};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[test]
fn the_kernels_controls_are_listed_with_those_that_can_be_loaded() {
    let listed = run(&["cc", "list"]).expect(0).stdout();
    for name in ["reno ", "rw_fair ", "rw_westwood "] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{listed}");
    }
}

#[test]
fn a_control_that_nobody_knows_is_refused_with_a_list_of_ours() {
    let refused = run(&["cc", "load", "rw_warp"]).expect(2).stderr();
    assert!(refused.contains("it can be one of rw_bic, rw_fair, "), "{refused}");
}

#[test]
fn terms_that_mean_nothing_are_refused() {
    let refused =
        run(&["info", "--congestion", "rw_fair:warp", "iscsi://127.0.0.1/iqn.2026-11.com.example:disk/0"]);
    let refused = refused.expect(2).stderr();
    assert!(refused.contains("\"warp\" is none of fair, single, "), "{refused}");
}

/// The names of the available congestion controls.
fn available() -> Vec<String> {
    let listed = run(&["cc", "list", "--json"]).expect(0).json_lines().remove(0);
    let controls = listed["congestion_controls"].as_array().unwrap();
    let available = controls.iter().filter(|control| control["available"] == true);
    available.map(|control| control["name"].as_str().unwrap().to_owned()).collect()
}

/// The congestion controls of a session's connections.
fn in_force(congestion: &str, url: &str) -> (Vec<Value>, String) {
    let shown = run(&["info", "--json", "--connections", "2", "--congestion", congestion, url]).expect(0);
    let connections = shown.json_lines().remove(0)["per_connection"].as_array().unwrap().clone();
    (connections.into_iter().map(|connection| connection["congestion"].clone()).collect(), shown.stderr())
}

#[test]
fn in_place_of_a_control_that_is_not_loaded_one_of_the_kernels_own_is_used_with_one_warning() {
    let _alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if available().iter().any(|name| name == "rw_westwood") {
        return skip(Need::Bpf, "somebody has loaded rw_westwood");
    }
    let server = Server::with_luns(&["0=ram:1MiB"]);
    let (controls, told) = in_force("rw_westwood", &server.url(0));
    assert_eq!(controls, ["cubic", "cubic"]);
    let warning = "using cubic instead of rw_westwood: rw_westwood is not loaded: \"ropewalk cc load rw_westwood\", as root, loads it";
    assert_eq!(told.matches(warning).count(), 1, "{told}");
}

#[test]
fn the_congestion_control_of_a_url_counts_more_than_that_of_the_option() {
    let server = Server::with_luns(&["0=ram:1MiB"]);
    let (controls, _) = in_force("cubic", &format!("{}?congestion=reno", server.url(0)));
    assert_eq!(controls, ["reno", "reno"]);
    let refused = run(&["info", &format!("{}?congestion=reno:single", server.url(0))]).expect(1).stderr();
    assert!(refused.contains("reno has no groups of connections, and takes no terms"), "{refused}");
}

#[test]
fn a_target_says_which_control_is_in_force_on_a_connection() {
    let serve = ["--target", TARGET, "--lun", "0=ram:1MiB", "--congestion", "reno"];
    let (server, log) = Server::heard(&serve);
    run(&["info", &server.url(0)]).expect(0);
    wait_for_line(log, |line| line.contains("session started") && line.contains("congestion=\"reno\""));
}

/// The groups that have connections.
fn groups() -> Vec<Value> {
    let status = run(&["cc", "status", "--json"]).expect(0).json_lines().remove(0);
    status["groups"].as_array().unwrap().clone()
}

/// Waits until there is such a group, which must be while these copies run.
fn await_group<'a>(copies: impl IntoIterator<Item = &'a mut Child>, is_it: impl Fn(&Value) -> bool) {
    let mut copies: Vec<_> = copies.into_iter().collect();
    while !groups().iter().any(&is_it) {
        assert!(copies.iter_mut().all(|copy| copy.try_wait().unwrap().is_none()), "{:?}", groups());
    }
}

/// What one test loads, another would find.
static LOADING: Mutex<()> = Mutex::new(());

/// All controls of ours, loaded, which are unloaded at the end.
struct Loaded(#[expect(dead_code, reason = "it is held")] MutexGuard<'static, ()>);

impl Loaded {
    /// `None`, with a word about it, where they cannot be loaded, or somebody has loaded them who may not want to lose them.
    fn all() -> Option<Self> {
        let alone = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        if available().iter().any(|name| name.starts_with("rw_")) {
            skip(Need::Bpf, "somebody has loaded controls of ours");
            return None;
        }
        let loaded = run(&["cc", "load"]);
        if loaded.status() == 0 {
            return Some(Self(alone));
        }
        skip(Need::Bpf, &loaded.stderr());
        None
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        run(&["cc", "unload"]).expect(0);
    }
}

#[test]
fn all_controls_load_at_once_each_carries_a_session_and_all_can_be_unloaded() {
    let Some(loaded) = Loaded::all() else { return };
    let again = run(&["cc", "load", "rw_fair"]).expect(1).stderr();
    assert!(again.contains("rw_fair is loaded already"), "{again}");
    let server = Server::with_luns(&["0=ram:1MiB"]);
    let ours: Vec<_> = available().into_iter().filter(|name| name.starts_with("rw_")).collect();
    assert_eq!(ours.len(), 8, "{ours:?}");
    for name in ours {
        let (controls, told) = in_force(&name, &server.url(0));
        assert_eq!((controls, told), (vec![name.clone().into(), name.into()], String::new()));
    }
    drop(loaded);
    assert!(!available().iter().any(|name| name.starts_with("rw_")));
}

/// The BPF file system, open to all users, who can otherwise not find what root has loaded.
struct OpenToAll(Permissions);

impl OpenToAll {
    const FOLDER: &str = "/sys/fs/bpf";

    fn new() -> Self {
        let before = fs::metadata(Self::FOLDER).unwrap().permissions();
        fs::set_permissions(Self::FOLDER, Permissions::from_mode(0o711)).unwrap();
        Self(before)
    }
}

impl Drop for OpenToAll {
    fn drop(&mut self) {
        fs::set_permissions(Self::FOLDER, self.0.clone()).unwrap();
    }
}

#[test]
fn a_user_without_rights_has_groups_of_its_own_under_what_root_has_loaded() {
    let Some(_loaded) = Loaded::all() else { return };
    let _open = OpenToAll::new();
    let server = Server::with_luns(&["0=ram:8MiB"]);
    // Such a user may not enter the folder of this build.
    let folder = Folder::new();
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).unwrap();
    let program = folder.path("ropewalk");
    fs::copy(env!("CARGO_BIN_EXE_ropewalk"), &program).unwrap();
    let disk = folder.write("disk", &noise(8 * MIB));
    let mut copy = Command::new("setpriv");
    copy.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    copy.args([
        "copy",
        "--bwlimit",
        "4M",
        "--connections",
        "2",
        "--congestion",
        "rw_fair",
        &disk,
        &server.url(0),
    ]);
    let mut copy = copy.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    await_group([&mut copy], |group| group["user"] == 65534 && group["connections"] == 2);
    let copied = copy.wait_with_output().unwrap();
    let told = String::from_utf8(copied.stderr).unwrap();
    assert!(copied.status.success() && !told.contains("instead of rw_fair"), "{told}");
}

#[test]
fn both_ends_of_a_session_have_groups_and_go_on_when_the_control_is_unloaded() {
    let Some(loaded) = Loaded::all() else { return };
    let serve = ["--target", TARGET, "--lun", "0=ram:8MiB", "--congestion", "rw_fair:single,cubic"];
    let (server, folder) = (Server::with(&serve), Folder::new());
    // A copy that waits, so that its groups can be seen.
    let (disk, url) = (folder.write("disk", &noise(8 * MIB)), server.url(0));
    let copy = ["copy", "--bwlimit", "4M", "--congestion", "rw_fair:weight=2", &disk, &url];
    let mut copy = ropewalk(&copy).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    for terms in ["weight=2", "single,cubic"] {
        await_group([&mut copy], |group| group["terms"] == terms);
    }
    drop(loaded);
    assert!(copy.wait().unwrap().success());
    // The server has used it, and goes on without it.
    assert_eq!(in_force("cubic", &url).0, ["cubic", "cubic"]);
}

#[test]
fn an_administrator_changes_how_a_group_behaves_while_it_sends() {
    let Some(_loaded) = Loaded::all() else { return };
    changes_how_a_group_behaves("rw_fair:equal", "equal", "single,cubic", "alpha=9");
    changes_how_a_group_behaves("rw_fast", "alpha=50", "alpha=20", "single");
}

/// `before` and `after` are a group's terms, and `other` are terms of another control.
fn changes_how_a_group_behaves(congestion: &str, before: &str, after: &str, other: &str) {
    let (server, folder) = (Server::with_luns(&["0=ram:8MiB"]), Folder::new());
    let (disk, url) = (folder.write("disk", &noise(8 * MIB)), server.url(0));
    let copy = ["copy", "--bwlimit", "4M", "--connections", "2", "--congestion", congestion, &disk, &url];
    let mut copy = ropewalk(&copy).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    await_group([&mut copy], |group| group["terms"] == before && group["connections"] == 2);
    let group = groups().remove(0);
    assert_eq!(group["local_address"], "127.0.0.1");
    assert!(group["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{group}");
    let set = |terms| ["cc", "set", group["group"].as_str().unwrap(), terms];
    let refused = run(&set(other)).expect(1).stderr();
    assert!(refused.contains(&format!("{other:?} says nothing")), "{refused}");
    run(&set(after)).expect(0);
    await_group([&mut copy], |changed| changed["group"] == group["group"] && changed["terms"] == after);
    assert!(copy.wait().unwrap().success());
}

#[test]
fn orders_for_no_group_and_orders_that_no_group_can_follow_are_refused() {
    let Some(_loaded) = Loaded::all() else { return };
    let refused = |group, terms, status| run(&["cc", "set", group, terms]).expect(status).stderr();
    let missing = refused("0123456789abcdef", "single", 1);
    assert!(missing.contains("no group 0123456789abcdef has connections"), "{missing}");
    assert!(refused("warp", "single", 2).contains("the number of a group is hexadecimal"));
    assert!(refused("7", "host", 2).contains("which connections a group has cannot be changed"));
    assert!(refused("7", "warp", 2).contains("\"warp\" is none of fair, single"));
}

#[test]
fn connections_to_one_host_share_a_group_whatever_their_sessions() {
    let Some(_loaded) = Loaded::all() else { return };
    let (server, folder) = (Server::with_luns(&["0=ram:8MiB", "1=ram:8MiB"]), Folder::new());
    let disk = folder.write("disk", &noise(8 * MIB));
    let mut copies = [0, 1].map(|lun| {
        let copy = [
            "copy",
            "--bwlimit",
            "4M",
            "--connections",
            "2",
            "--congestion",
            "rw_fair:host",
            &disk,
            &server.url(lun),
        ];
        ropewalk(&copy).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    });
    await_group(&mut copies, |group| group["terms"] == "host" && group["connections"] == 4);
    copies.iter_mut().for_each(|copy| assert!(copy.wait().unwrap().success()));
}
