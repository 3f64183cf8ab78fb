//! `ropewalk copy` to disks that somebody has reserved, and what it does that nobody else writes.

use crate::world::{Folder, MIB, Server, noise, run, signal, wait_for_line};
use initiator::{Config, Connections, Lun, Target, Transfer};
use std::process::{Child, Command, Stdio};
use tokio::runtime::Runtime;

const HOST: &str = "iqn.2026-11.org.example:other";

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Another host's session with the first disk of a server.
async fn connect(server: &Server) -> (Target, Lun) {
    let config =
        Config { initiator_name: HOST.to_owned(), connections: Connections::Fixed(1), ..Config::default() };
    let session = initiator::connect(&server.url(0).parse().unwrap(), config).await.unwrap();
    let lun = session.lun(0).await.unwrap();
    (session, lun)
}

/// A copy that has begun to write, and takes its time.
fn slow_copy(image: &str, server: &Server, arguments: &[&str]) -> Child {
    let slowly = ["copy", "--json", "--bwlimit", "512K", "--request-size", "64K"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args(slowly)
        .args(arguments)
        .args([image, &server.url(0)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_line(child.stdout.as_mut().unwrap(), |line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["bytes"].as_u64() > Some(0)
    });
    child
}

#[test]
fn of_two_copies_to_one_disk_the_second_is_refused() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:8MiB"]));
    let image = folder.write("image", &noise(8 * MIB));
    let first = slow_copy(&image, &server, &["--sessions", "2", "--connections", "2"]);
    let refused = run(&["copy", "--overwrite", &image, &server.url(0)]).expect(5).stderr();
    assert!(refused.contains("is reserved by iqn.") && refused.contains("key 0x5257"), "{refused}");
    assert!(refused.contains("another copy") && refused.contains("--break-reservation"), "{refused}");
    assert!(refused.contains("nothing was written"), "{refused}");
    signal(first.id(), "INT");
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(130));
    run(&["copy", "--overwrite", "--verify=full", &image, &server.url(0)]).expect(0);
    let holder = runtime().block_on(async { connect(&server).await.1.reservation_holder().await.unwrap() });
    assert_eq!(holder, None);
}

#[test]
fn a_copy_whose_reservation_was_broken_fails_although_the_other_copy_has_ended() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:8MiB"]));
    let images = [folder.write("one", &noise(8 * MIB)), folder.write("other", &vec![7; 8 << 20])];
    let first = slow_copy(&images[0], &server, &[]);
    // While the other copies, the first must not write: it would be told of the other's reservation.
    signal(first.id(), "STOP");
    let other = run(&["copy", "--overwrite", "--break-reservation", &images[1], &server.url(0)]);
    signal(first.id(), "CONT");
    other.expect(0);
    let broken = first.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&broken.stderr);
    assert_eq!(broken.status.code(), Some(1), "{told}");
    assert!(told.contains("is gone: others may have written"), "{told}");
    let back = folder.path("back");
    run(&["copy", &server.url(0), back.to_str().unwrap()]).expect(0);
    assert!(std::fs::read(back).unwrap() == std::fs::read(&images[1]).unwrap());
}

#[test]
fn the_reservation_of_a_killed_copy_stays_until_it_is_broken() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:8MiB"]));
    let image = folder.write("image", &noise(8 * MIB));
    let mut killed = slow_copy(&image, &server, &[]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    run(&["copy", "--overwrite", &image, &server.url(0)]).expect(5);
    run(&["copy", "--overwrite", "--break-reservation", &image, &server.url(0)]).expect(0);
    run(&["copy", "--overwrite", &image, &server.url(0)]).expect(0);
}

#[test]
fn a_copy_that_is_refused_for_another_reason_leaves_no_reservation() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:1MiB"]));
    let image = folder.write("image", &noise(2 * MIB));
    run(&["copy", &image, &server.url(0)]).expect(5);
    let holder = runtime().block_on(async { connect(&server).await.1.reservation_holder().await.unwrap() });
    assert_eq!(holder, None);
}

#[test]
fn a_disk_that_another_host_has_reserved_is_refused() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:4MiB"]));
    let image = folder.write("image", &noise(MIB));
    let runtime = runtime();
    let (_session, lun) = runtime.block_on(connect(&server));
    assert!(runtime.block_on(lun.reserve(false)).unwrap().is_held());
    for arguments in [&["copy"][..], &["copy", "--overwrite"], &["copy", "--dry-run"]] {
        let refused = run(&[arguments, &[&image, &server.url(0)]].concat()).expect(5).stderr();
        assert!(refused.contains(HOST) && refused.contains("nothing was written"), "{refused}");
    }
    run(&["copy", "--break-reservation", &image, &server.url(0)]).expect(0);
}

#[test]
fn a_disk_that_another_host_has_reserved_for_its_session_is_refused() {
    const RESERVE_6: [u8; 16] = [0x16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:4MiB"]));
    let image = folder.write("image", &noise(MIB));
    let runtime = runtime();
    let (session, lun) = runtime.block_on(connect(&server));
    runtime.block_on(lun.execute(RESERVE_6.into(), Transfer::None)).unwrap();
    for arguments in [&["copy"][..], &["copy", "--overwrite"], &["copy", "--dry-run"]] {
        let refused = run(&[arguments, &[&image, &server.url(0)]].concat()).expect(5).stderr();
        assert!(refused.contains("is reserved by another initiator"), "{refused}");
        assert!(refused.contains("nothing was written"), "{refused}");
    }
    let first = runtime.block_on(lun.read(0, 4096)).unwrap();
    assert!(first.iter().all(|byte| *byte == 0));
    drop(lun);
    runtime.block_on(session.close()).unwrap();
    run(&["copy", &image, &server.url(0)]).expect(0);
}
