//! What breaks during a copy, and is overcome.

use crate::world::{Folder, MIB, Server, TARGET, noise, ropewalk, wait_for_line};
use std::process::Stdio;

#[test]
fn a_copy_survives_the_death_of_a_target_that_loses_its_cache() {
    let folder = Folder::new();
    let lun = format!("0=file:{},size=48MiB,volatile", folder.text("disk"));
    let server = Server::with_luns(&[&lun]);
    let url = server.url(0);
    let image = folder.write("image", &noise(48 * MIB));
    let arguments = ["copy", "--json", "--verify=full", "--bwlimit=16M", "--request-size=256K", &image, &url];
    let mut child = ropewalk(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    wait_for_line(&mut output, |line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["bytes"].as_u64() > Some(0)
    });
    // Nothing is flushed.
    let reborn = server.reborn(&["--target", TARGET, "--lun", &lun]);
    let mut last = String::new();
    wait_for_line(&mut output, |line| {
        line.clone_into(&mut last);
        line.contains("\"summary\"")
    });
    assert_eq!(child.wait().unwrap().code(), Some(0), "{last}");
    let summary: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert!(summary["losses"].as_u64() > Some(0), "{last}");
    assert_eq!(reborn.terminate(), 0);
    assert!(folder.read("disk") == folder.read("image"));
}
