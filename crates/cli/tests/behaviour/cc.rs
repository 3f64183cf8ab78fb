//! Congestion controls of our own, from the command line.

use crate::world::{Folder, MIB, Server, noise, ropewalk, run};
use serde_json::Value;
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

#[cfg(feature = "bpf")]
#[test]
fn what_root_has_loaded_is_used_in_groups_until_it_is_unloaded() {
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
    let (server, folder) = (Server::with_luns(&["0=ram:8MiB"]), Folder::new());
    let (controls, told) = in_force("rw_fair:single", &server.url(0));
    assert_eq!((controls, told), (vec!["rw_fair".into(), "rw_fair".into()], String::new()));
    let disk = folder.write("disk", &noise(8 * MIB));
    let copied = ["copy", "--congestion", "rw_fair:cubic", "--connections", "4", &disk, &server.url(0)];
    run(&copied).expect(0);
    // A copy that waits, so that its group can be seen.
    let slow =
        ["copy", "--bwlimit", "4M", "--overwrite", "--congestion", "rw_fair:weight=2", &disk, &server.url(0)];
    let mut waiting = ropewalk(&slow).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let group = loop {
        let status = run(&["cc", "status", "--json"]).expect(0).json_lines().remove(0);
        let groups = status["groups"].as_array().unwrap();
        if let Some(group) = groups.iter().find(|group| group["terms"] == "weight=2") {
            break group.clone();
        }
        assert!(waiting.try_wait().unwrap().is_none(), "{status}");
    };
    assert!(group["connections"].as_u64().unwrap() >= 1, "{group}");
    assert!(waiting.wait().unwrap().success());
    run(&["cc", "unload", "rw_fair"]).expect(0);
    assert!(!available().iter().any(|name| name == "rw_fair"));
}
