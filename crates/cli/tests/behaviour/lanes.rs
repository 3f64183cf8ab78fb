//! Connections that are split into one for requests and others for responses, as users meet them.

use crate::world::{Folder, MIB, Server, noise, run};
use serde_json::Value;

/// What each connection of a disk carries, by its session.
fn carried(lanes: &str, connections: &str, url: &str) -> Vec<(u64, String)> {
    let shown = run(&["info", "--json", "--connections", connections, "--lanes", lanes, url]).expect(0);
    let shown = shown.json_lines().remove(0);
    let of = |connection: &Value| {
        (connection["session"].as_u64().unwrap(), connection["role"].as_str().unwrap().to_owned())
    };
    shown["per_connection"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn each_split_connection_is_a_session_with_one_for_each_role() {
    let server = Server::with_luns(&["0=ram:1MiB"]);
    let url = server.url(0);
    let of = |session: u64, roles: &[&str]| {
        roles.iter().map(|role| (session, (*role).to_owned())).collect::<Vec<_>>()
    };
    let sorted = |mut carried: Vec<(u64, String)>| {
        carried.sort();
        carried
    };
    assert_eq!(sorted(carried("whole", "2", &url)), of(0, &["whole", "whole"]));
    let split = [of(0, &["requests", "responses"]), of(1, &["requests", "responses"])].concat();
    assert_eq!(sorted(carried("split", "2", &url)), split);
    assert_eq!(sorted(carried("split3", "1", &url)), of(0, &["data-in", "requests", "responses"]));
}

#[test]
fn an_image_travels_there_and_back_over_split_connections() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:16MiB"]));
    let image = noise(16 * MIB);
    let there = folder.write("there", &image);
    for lanes in ["split", "split3"] {
        let back = folder.text(lanes);
        let options = ["--connections", "3", "--lanes", lanes, "--overwrite"];
        let said =
            run(&[&["copy", "--verify", "full", &there, &server.url(0)], &options[..]].concat()).expect(0);
        assert!(said.stdout().contains("in 3 sessions"), "{}", said.stdout());
        assert_eq!(said.stderr(), "");
        run(&[&["copy", &server.url(0), &back], &options[..]].concat()).expect(0);
        assert!(folder.read(lanes) == image);
    }
}

#[test]
fn a_split_that_nobody_knows_is_refused() {
    let url = "iscsi://127.0.0.1/iqn.2026-11.com.example:disk/0";
    let refused = run(&["info", "--lanes", "both", url]).expect(2).stderr();
    assert!(refused.contains("\"both\" is none of whole, split and split3"), "{refused}");
}
