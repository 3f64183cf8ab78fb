//! `ropewalk copy` as its users meet it.

#[path = "../../../initiator/tests/behaviour/world/meddler.rs"]
#[allow(dead_code, reason = "the initiator's tests use the rest")]
mod meddler;

use crate::world;
use crate::world::{Folder, MIB, Outcome, Server, noise, ropewalk, run, signal, wait_for_line};
use meddler::{Meddler, Meddling};
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;

#[test]
fn an_image_travels_there_and_back_over_sixteen_connections() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:32MiB"]));
    let mut image = noise(20 * MIB);
    image[5 * MIB..9 * MIB].fill(0);
    let (there, back) = (folder.write("there", &image), folder.text("back"));
    let said = run(&["copy", "--verify", "full", &there, &server.url(0)]).expect(0).stdout();
    assert!(said.contains("16 connections in 1 session (cubic at this end)"), "{said}");
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
    for word in ["naa.", "1.00 MiB", "4.00 MiB", "16 in 1 session", "nothing was written"] {
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

/// The binary itself: `timeout` would get the signals in its place.
fn unlimited(arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_ropewalk")]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts it, and sends the signal after the first line that satisfies the condition.
fn interrupt(
    mut command: Command,
    name: &str,
    condition: impl Fn(&serde_json::Value) -> bool,
) -> (Outcome, Vec<serde_json::Value>) {
    let mut child = command.spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    wait_for_line(&mut output, |line| condition(&serde_json::from_str(line).unwrap()));
    signal(child.id(), name);
    let mut lines = String::new();
    std::io::Read::read_to_string(&mut output, &mut lines).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (Outcome(child.wait_with_output().unwrap()), lines)
}

#[test]
fn an_interrupted_copy_says_that_the_destination_is_garbage() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:8MiB"]));
    let image = folder.write("image", &noise(8 * MIB));
    let slow = ["copy", "--json", "--overwrite", "--bwlimit", "512K", "--request-size", "64K"];
    for (name, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let command = unlimited(&[&slow[..], &[&image, &server.url(0)]].concat());
        let (outcome, lines) = interrupt(command, name, |line| line["bytes"].as_u64() > Some(0));
        let said = outcome.expect(status).stderr();
        assert!(said.contains("interrupted") && said.contains("garbage"), "{said}");
        let summary = lines.last().unwrap();
        assert_eq!((&summary["message_type"], &summary["done"]), (&"summary".into(), &false.into()));
    }
}

#[test]
fn an_interrupted_restore_leaves_no_file_with_the_name_of_a_good_one() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:8MiB"]));
    let image = folder.write("image", &noise(8 * MIB));
    run(&["copy", &image, &server.url(0)]).expect(0);
    let slow = ["copy", "--json", "--bwlimit", "512K", "--request-size", "64K"];
    let command = unlimited(&[&slow[..], &[&server.url(0), &folder.text("back")]].concat());
    let (outcome, _) = interrupt(command, "INT", |line| line["bytes"].as_u64() > Some(0));
    let said = outcome.expect(130).stderr();
    assert!(said.contains("back.partial") && !folder.path("back").exists(), "{said}");
    assert!(folder.path("back.partial").exists());
}

#[test]
fn a_copy_under_nohup_survives_its_terminal() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:2MiB"]));
    let image = folder.write("image", &noise(2 * MIB));
    let mut command = Command::new("env");
    command.args(["--ignore-signal=HUP", env!("CARGO_BIN_EXE_ropewalk"), "copy", "--json", "--bwlimit=1M"]);
    command
        .args(["--request-size=64K", &image, &server.url(0)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    interrupt(command, "HUP", |line| line["bytes"].as_u64() > Some(0)).0.expect(0);
}

#[test]
fn an_interrupted_bench_shows_what_it_measured() {
    let server = Server::with_luns(&["0=ram:8MiB"]);
    let command = unlimited(&["bench", "--json", &server.url(0)]);
    let (outcome, lines) = interrupt(command, "INT", |_| true);
    outcome.expect(130);
    let summary = lines.last().unwrap();
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
    assert_eq!(child.wait().unwrap().code(), Some(129));
    let summary: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["message_type"], &summary["done"]), (&"summary".into(), &false.into()));
}

#[test]
fn a_signal_ends_a_copy_that_waits_for_an_answer() {
    let folder = Folder::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("iscsi://{}/{}/0", silent.local_addr().unwrap(), world::TARGET);
    let child = unlimited(&["copy", &folder.write("image", &noise(MIB)), &url]).spawn().unwrap();
    let _unanswered = silent.accept().unwrap();
    signal(child.id(), "HUP");
    let said = Outcome(child.wait_with_output().unwrap()).expect(129).stderr();
    assert!(said.contains("nothing was written"), "{said}");
}

/// Starts a command at a target that falls silent at this command, and sends it a signal when it does.
fn interrupt_at_silence(
    server: &Server,
    mut is_swallowed: impl FnMut(&[u8; 16]) -> bool + Send + 'static,
    command: impl FnOnce(&str) -> Command,
) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let meddler = runtime.block_on(Meddler::to(server.address.parse().unwrap()));
    let (swallowing, swallowed) = mpsc::channel();
    meddler.meddle(move |cdb| {
        if !is_swallowed(cdb) {
            return Meddling::Nothing;
        }
        // Only the first is waited for.
        let _ = swallowing.send(());
        Meddling::Swallow
    });
    let (_end, ended) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || runtime.block_on(ended));
    let child = command(&format!("iscsi://{}/{}/0", meddler.address, world::TARGET)).spawn().unwrap();
    swallowed.recv().unwrap();
    signal(child.id(), "TERM");
    Outcome(child.wait_with_output().unwrap())
}

fn is_persistent_reserve_in(cdb: &[u8; 16]) -> bool {
    cdb[0] == 0x5e
}

fn is_persistent_reserve_out(cdb: &[u8; 16]) -> bool {
    cdb[0] == 0x5f
}

fn is_read(cdb: &[u8; 16]) -> bool {
    matches!(cdb[0], 0x28 | 0x88)
}

fn is_get_lba_status(cdb: &[u8; 16]) -> bool {
    cdb[..2] == [0x9e, 0x12]
}

#[test]
fn a_signal_ends_a_copy_whose_target_falls_silent_before_the_first_write() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:8MiB"]));
    let (image, new) = (folder.write("image", &noise(MIB)), folder.text("new"));
    let expect_end = |is_swallowed: fn(&[u8; 16]) -> bool, words: &[&str]| {
        let outcome = interrupt_at_silence(&server, is_swallowed, |url| {
            let words: Vec<_> = words.iter().map(|word| if *word == "URL" { url } else { word }).collect();
            unlimited(&[&["copy", "--connections=1"][..], &words].concat())
        });
        let said = outcome.expect(143).stderr();
        assert!(said.contains("nothing was written"), "{said}");
    };
    // At once, because each waits a few seconds for a goodbye.
    std::thread::scope(|scope| {
        scope.spawn(|| expect_end(is_persistent_reserve_out, &[&image, "URL"]));
        scope.spawn(|| expect_end(is_persistent_reserve_in, &["--dry-run", &image, "URL"]));
        scope.spawn(|| expect_end(is_read, &[&image, "URL"]));
        scope.spawn(|| expect_end(is_get_lba_status, &["--dry-run", "URL", &new]));
    });
}

#[test]
fn a_copy_that_is_interrupted_while_it_reserves_leaves_no_reservation() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:8MiB"]));
    let image = folder.write("image", &noise(MIB));
    // The first session has registered and reserved; the second one's registration is lost.
    let mut reserve_outs = 0;
    let is_third = move |cdb: &[u8; 16]| {
        reserve_outs += u32::from(is_persistent_reserve_out(cdb));
        is_persistent_reserve_out(cdb) && reserve_outs == 3
    };
    let outcome = interrupt_at_silence(&server, is_third, |url| {
        unlimited(&["copy", "--sessions=2", "--connections=2", &image, url])
    });
    outcome.expect(143);
    run(&["copy", &image, &server.url(0)]).expect(0);
}

#[test]
fn a_lost_target_is_waited_for_as_long_as_asked() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:64MiB"]));
    let image = folder.write("image", &noise(64 * MIB));
    let arguments = ["copy", "--json", "--patience=2s", "--bwlimit=1M", "--request-size=64K", &image];
    let mut child = ropewalk(&arguments).arg(server.url(0)).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let status = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    wait_for_line(&mut output, |line| status(line)["bytes"].as_u64() > Some(0));
    drop(server);
    let mut was_reconnecting = false;
    wait_for_line(&mut output, |line| {
        was_reconnecting |= status(line)["reconnecting_seconds"].is_number();
        line.contains("\"summary\"")
    });
    assert!(was_reconnecting);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
