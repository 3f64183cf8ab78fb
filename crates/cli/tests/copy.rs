//! `ropewalk copy` as its users meet it.

mod world;

use std::io::{Seek, SeekFrom, Write};
use std::process::{Command, Stdio};
use world::{Folder, MIB, Server, noise, ropewalk, run, signal, wait_for_line};

#[test]
fn an_image_travels_there_and_back_over_four_connections() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:32MiB"]));
    let mut image = noise(20 * MIB);
    image[5 * MIB..9 * MIB].fill(0);
    let (there, back) = (folder.write("there", &image), folder.text("back"));
    let said = run(&["copy", "--verify", "full", &there, &server.url(0)]).expect(0).stdout();
    assert!(said.contains("4 connections in 1 session"), "{said}");
    run(&["copy", &server.url(0), &back]).expect(0);
    assert!(folder.read("back")[..20 * MIB] == image);
    assert_eq!(folder.read("back").len(), 32 * MIB);
}

#[test]
fn a_lun_is_copied_to_another() {
    let folder = Folder::new();
    let image = noise(8 * MIB);
    folder.write("image", &image);
    let file = format!("0=file:{},ro", folder.text("image"));
    let (from, to) = (Server::with_luns(&[&file]), Server::with_luns(&["0=ram:8MiB"]));
    run(&["copy", "--verify=full", "--connections", "2", &from.url(0), &to.url(0)]).expect(0);
    run(&["copy", &to.url(0), &folder.text("back")]).expect(0);
    assert!(folder.read("back") == image);
}

#[test]
fn standard_input_and_output_are_ends_too() {
    let server = Server::with_luns(&["0=ram:4MiB"]);
    let mut child = ropewalk(&["copy", "-", &server.url(0)]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&noise(3 * MIB + 1)).unwrap();
    assert!(child.wait().unwrap().success());
    let output = run(&["copy", &server.url(0), "-"]).expect(0).0;
    assert!(output.stdout[..3 * MIB + 1] == noise(3 * MIB + 1));
    assert_eq!(output.stdout.len(), 4 * MIB);
}

#[test]
fn a_destination_with_a_filesystem_is_refused_until_it_may_be_overwritten() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:16MiB"]));
    let image = folder.write("image", &[]);
    std::fs::File::options().write(true).open(&image).unwrap().set_len(16 * MIB as u64).unwrap();
    assert!(Command::new("mkfs.ext4").args(["-q", &image]).status().unwrap().success());
    run(&["copy", &image, &server.url(0)]).expect(0);
    let other = folder.write("other", &noise(MIB));
    let refused = run(&["copy", &other, &server.url(0)]).expect(5).stderr();
    assert!(refused.contains("ext4 filesystem") && refused.contains("--overwrite"), "{refused}");
    assert!(refused.contains("nothing was written"), "{refused}");
    run(&["copy", &server.url(0), &folder.text("back")]).expect(0);
    assert!(folder.read("back") == folder.read("image"));
    run(&["copy", "--overwrite", &other, &server.url(0)]).expect(0);
}

#[test]
fn a_destination_that_is_too_small_is_refused() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:1MiB"]));
    let image = folder.write("image", &noise(MIB + 1));
    let refused = run(&["copy", &image, &server.url(0)]).expect(5).stderr();
    assert!(refused.contains("holds 1048576 bytes"), "{refused}");
}

#[test]
fn a_dry_run_shows_both_ends_and_writes_nothing() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:4MiB"]));
    let image = folder.write("image", &noise(MIB));
    let plan = run(&["copy", "-n", &image, &server.url(0)]).expect(0).stdout();
    for word in ["naa.", "1.00 MiB", "4.00 MiB", "4 in 1 session", "nothing was written"] {
        assert!(plan.contains(word), "{word:?} is not in {plan}");
    }
    run(&["copy", &server.url(0), &folder.text("back")]).expect(0);
    assert!(folder.read("back").iter().all(|byte| *byte == 0));
    run(&["copy", "-n", &image, &folder.text("new")]).expect(0);
    assert!(!folder.path("new").exists());
}

#[test]
fn another_identity_than_expected_is_refused() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:4MiB"]));
    let image = folder.write("image", &noise(MIB));
    let plan = run(&["copy", "-n", "--json", &image, &server.url(0)]).expect(0).json_lines();
    let id = plan[0]["destination_id"].as_str().unwrap();
    run(&["copy", "--expect-id", "naa.6000000000000000", &image, &server.url(0)]).expect(5);
    run(&["copy", "--expect-id", id, &image, &server.url(0)]).expect(0);
}

#[test]
fn a_source_that_changes_during_the_copy_is_told() {
    let folder = Folder::new();
    let (from, to) = (folder.write("from", &noise(4 * MIB)), folder.text("to"));
    let arguments = ["copy", "--json", "--verify=full", "--bwlimit=1M", "--request-size=64K", "--requests=1"];
    let mut child = ropewalk(&arguments).args([&from, &to]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    wait_for_line(&mut output, |line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["bytes"].as_u64() > Some(0)
    });
    let mut file = std::fs::File::options().write(true).open(&from).unwrap();
    file.seek(SeekFrom::Start(77)).unwrap();
    file.write_all(&[0; 10]).unwrap();
    let mut lines = String::new();
    std::io::Read::read_to_string(&mut output, &mut lines).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(lines.contains("changed while it was copied"), "{lines}");
    assert!(!folder.path("to").exists());
}

#[test]
fn an_interrupted_copy_says_that_the_destination_is_garbage() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:8MiB"]));
    let image = folder.write("image", &noise(8 * MIB));
    let arguments = ["copy", "--json", "--bwlimit", "512K", "--request-size", "64K", &image, &server.url(0)];
    // Not under `timeout`, which would get the signal instead.
    let mut child = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    wait_for_line(&mut output, |line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["bytes"].as_u64() > Some(0)
    });
    signal(child.id(), "INT");
    let mut lines = String::new();
    std::io::Read::read_to_string(&mut output, &mut lines).unwrap();
    let said = child.wait_with_output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    let said = String::from_utf8_lossy(&said.stderr);
    assert!(said.contains("interrupted") && said.contains("garbage"), "{said}");
    let summary: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["message_type"], &summary["done"]), (&"summary".into(), &false.into()));
}

#[test]
fn a_copy_whose_terminal_hangs_up_ends_in_order_and_does_not_take_the_second_hangup_for_impatience() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:8MiB"]));
    let image = folder.write("image", &noise(8 * MIB));
    let arguments = ["copy", "--json", "--bwlimit", "512K", "--request-size", "64K", &image, &server.url(0)];
    let (_, unheard) = std::io::pipe().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(unheard)
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    wait_for_line(&mut output, |line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["bytes"].as_u64() > Some(0)
    });
    // From the kernel, and from the shell.
    signal(child.id(), "HUP");
    signal(child.id(), "HUP");
    let mut lines = String::new();
    std::io::Read::read_to_string(&mut output, &mut lines).unwrap();
    assert!(child.wait().unwrap().code().is_some(), "it ended by the signal");
    let summary: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["message_type"], &summary["done"]), (&"summary".into(), &false.into()));
}
