//! `ropewalk attach` and `ropewalk detach`.

use crate::world::{Folder, MIB, Server, TARGET, noise, ropewalk, run, signal};
use requirement::{Requirement, require};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

/// `O_EXCL` of Linux: a block device opened with it is claimed, as by a mount.
const CLAIM: i32 = 0o200;

/// An attached disk, which goes with its test.
struct Attached {
    path: String,
    name: String,
}

impl Attached {
    fn new(test: &str, arguments: &[&str]) -> Self {
        let name = format!("test-{}-{test}", std::process::id());
        let outcome = run(&[&["attach", "--name", &name], arguments].concat()).expect(0);
        Self { path: outcome.stdout().trim_end().to_owned(), name }
    }

    fn entry(&self) -> Value {
        let list = run(&["attach", "--list", "--json"]).expect(0).json_lines().remove(0);
        let mut disks = list["attached"].as_array().unwrap().iter();
        disks.find(|disk| disk["name"] == self.name.as_str()).cloned().unwrap_or_default()
    }

    fn kill(&self) {
        signal(u32::try_from(self.entry()["pid"].as_u64().unwrap()).unwrap(), "KILL");
    }

    fn open(&self) -> File {
        OpenOptions::new().read(true).write(true).open(&self.path).unwrap()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        run(&["detach", "--force", &self.name]);
    }
}

#[test]
fn an_nbd_client_uses_a_remote_disk() {
    if !require(&[Requirement::Peers(&["qemu-img"])]) {
        return;
    }
    let server = Server::with_luns(&["0=ram:4MiB"]);
    let folder = Folder::new();
    let image = folder.write("image", &noise(4 * MIB));
    let disk = Attached::new("nbd", &["--nbd", &folder.text("socket"), &server.url(0)]);
    assert_eq!(disk.path, folder.text("socket"));
    let address = format!("nbd+unix:///?socket={}", disk.path);
    let convert = ["convert", "-n", "-f", "raw", "-O", "raw", &image, &address];
    assert!(Command::new("qemu-img").args(convert).status().unwrap().success());
    run(&["detach", &disk.path]).expect(0);
    assert!(!folder.path("socket").exists());
    run(&["copy", &server.url(0), &folder.text("copy")]).expect(0);
    assert!(folder.read("copy") == noise(4 * MIB));
}

#[test]
fn a_remote_disk_is_a_block_device_until_it_is_detached() {
    if !require(&[Requirement::Root]) {
        return;
    }
    let server = Server::with_luns(&["0=ram:4MiB"]);
    let disk = Attached::new("loop", &[&server.url(0)]);
    let mut device = disk.open();
    device.write_all(&noise(MIB)).unwrap();
    device.sync_all().unwrap();
    drop(device);
    let entry = disk.entry();
    assert_eq!((&entry["served"], &entry["bytes"]), (&Value::from(true), &Value::from(4 * MIB)));
    run(&["detach", &disk.path]).expect(0);
    assert_eq!(disk.entry(), Value::Null);
    assert!(!std::fs::exists(&disk.path).unwrap());
    let folder = Folder::new();
    run(&["copy", &server.url(0), &folder.text("copy")]).expect(0);
    assert!(folder.read("copy")[..MIB] == noise(MIB));
}

#[test]
fn a_device_in_use_is_not_detached() {
    if !require(&[Requirement::Root]) {
        return;
    }
    let disk = Attached::new("used", &["ram:1MiB"]);
    let claim = OpenOptions::new().read(true).custom_flags(CLAIM).open(&disk.path).unwrap();
    let said = run(&["detach", &disk.name]).expect(1).stderr();
    assert!(said.contains("is in use: unmount it first"), "{said}");
    drop(claim);
    run(&["detach", &disk.name]).expect(0);
}

#[test]
fn a_disk_is_attached_once() {
    if !require(&[Requirement::Root]) {
        return;
    }
    let disk = Attached::new("once", &["ram:1MiB"]);
    let said = run(&["attach", "--name", &disk.name, "ram:1MiB"]).expect(1).stderr();
    assert!(said.contains("is attached already"), "{said}");
}

#[test]
fn a_disk_is_not_written_to_through_two_devices() {
    let server = Server::with_luns(&["0=ram:4MiB"]);
    let folder = Folder::new();
    let (one, other, url) = (folder.text("one"), folder.text("other"), server.url(0));
    let disk = Attached::new("twice", &["--nbd", &one, &url]);
    for more in [&["--name", "another"][..], &["--name", "another", "--read-only"]] {
        let again = [&["attach", "--nbd", &other, &url], more].concat();
        let said = run(&again).expect(1).stderr();
        assert!(said.contains(&format!("attached already, as {}: use {one}", disk.name)), "{said}");
    }
    run(&["detach", &disk.name]).expect(0);
    let _one = Attached::new("read", &["--read-only", "--nbd", &one, &url]);
    let _other = Attached::new("read-again", &["--read-only", "--nbd", &other, &url]);
}

#[test]
fn a_killed_server_leaves_errors_and_is_cleaned_up() {
    if !require(&[Requirement::Root]) {
        return;
    }
    let disk = Attached::new("killed", &["ram:1MiB"]);
    let mut device = disk.open();
    disk.kill();
    assert!(device.read(&mut [0; 4096]).is_err());
    drop(device);
    assert_eq!(disk.entry()["served"], false);
    let said = run(&["attach", "--name", &disk.name, "ram:1MiB"]).expect(1).stderr();
    assert!(said.contains("has not been detached since its server ended"), "{said}");
    run(&["detach", &disk.name]).expect(0);
    assert_eq!(disk.entry(), Value::Null);
}

#[test]
fn a_lost_target_is_waited_for_and_then_told_to_everyone() {
    if !require(&[Requirement::Root]) {
        return;
    }
    let server = Server::with_luns(&["0=ram:4MiB"]);
    let disk = Attached::new("lost", &["--patience", "1s", &server.url(0)]);
    let mut device = disk.open();
    device.write_all(&noise(MIB)).unwrap();
    device.sync_all().unwrap();
    drop(server);
    device.rewind().unwrap();
    device.write_all(&noise(MIB)).unwrap();
    for _ in 0..2 {
        assert!(device.sync_all().is_err());
    }
    drop(device);
    let said = run(&["detach", &disk.name]).expect(1).stderr();
    assert!(said.contains("is detached, but writes were lost"), "{said}");
}

#[test]
fn a_target_that_comes_back_in_time_costs_only_the_wait() {
    if !require(&[Requirement::Root]) {
        return;
    }
    let folder = Folder::new();
    let lun = format!("0=file:{},size=4MiB", folder.text("disk"));
    let lun = ["--target", TARGET, "--lun", &lun];
    let server = Server::with(&lun);
    let disk = Attached::new("back", &[&server.url(0)]);
    let mut device = disk.open();
    device.write_all(&noise(MIB)).unwrap();
    device.sync_all().unwrap();
    let _server = server.reborn(&lun);
    device.write_all(&noise(MIB)).unwrap();
    device.sync_all().unwrap();
    drop(device);
    run(&["detach", &disk.name]).expect(0);
    assert!(folder.read("disk")[..2 * MIB] == [noise(MIB), noise(MIB)].concat());
}

#[test]
fn a_disk_that_cannot_be_opened_is_not_attached() {
    let server = Server::with_luns(&["0=ram:1MiB"]);
    let folder = Folder::new();
    let outcome = ropewalk(&["attach", "--nbd", &folder.text("socket"), &server.url(7)]).output().unwrap();
    assert_eq!(outcome.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&outcome.stderr).contains("cannot open"));
    assert!(!folder.path("socket").exists());
}
