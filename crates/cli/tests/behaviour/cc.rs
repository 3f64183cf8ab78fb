//! Congestion controls of our own, from the command line.

#[cfg(feature = "bpf")]
use crate::world::{Folder, MIB, TARGET, noise, ropewalk};
use crate::world::{Server, run};
use serde_json::Value;
#[cfg(feature = "bpf")]
use std::process::Stdio;

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
    if available().iter().any(|name| name == "rw_westwood") {
        // Somebody has loaded it.
        return;
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

/// The terms of the groups that have connections.
#[cfg(feature = "bpf")]
fn groups() -> Vec<Value> {
    let status = run(&["cc", "status", "--json"]).expect(0).json_lines().remove(0);
    let groups = status["groups"].as_array().unwrap().iter();
    groups
        .filter(|group| group["connections"].as_u64().unwrap() > 0)
        .map(|group| group["terms"].clone())
        .collect()
}

#[cfg(feature = "bpf")]
#[test]
fn both_ends_of_a_session_have_groups_and_go_on_when_the_control_is_unloaded() {
    use requirement::{Need, skip};

    if available().iter().any(|name| name == "rw_fair") {
        // Somebody has loaded it, who may not want to lose it.
        return;
    }
    let loaded = run(&["cc", "load", "rw_fair"]);
    if loaded.status() != 0 {
        return skip(Need::Bpf, &loaded.stderr());
    }
    let again = run(&["cc", "load", "rw_fair"]).expect(1).stderr();
    assert!(again.contains("rw_fair is loaded already"), "{again}");
    let serve = ["--target", TARGET, "--lun", "0=ram:8MiB", "--congestion", "rw_fair:single,cubic"];
    let (server, folder) = (Server::with(&serve), Folder::new());
    let (controls, told) = in_force("rw_fair", &server.url(0));
    assert_eq!((controls, told), (vec!["rw_fair".into(), "rw_fair".into()], String::new()));
    // A copy that waits, so that its groups can be seen.
    let (disk, url) = (folder.write("disk", &noise(8 * MIB)), server.url(0));
    let copy = ["copy", "--bwlimit", "4M", "--congestion", "rw_fair:weight=2", &disk, &url];
    let mut copy = ropewalk(&copy).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let both = ["weight=2", "single,cubic"].map(Value::from);
    while !both.iter().all(|terms| groups().contains(terms)) {
        assert!(copy.try_wait().unwrap().is_none(), "{:?}", groups());
    }
    run(&["cc", "unload", "rw_fair"]).expect(0);
    assert!(!available().iter().any(|name| name == "rw_fair"));
    assert!(copy.wait().unwrap().success());
    // The server has used it, and goes on without it.
    assert_eq!(in_force("cubic", &url).0, ["cubic", "cubic"]);
}
