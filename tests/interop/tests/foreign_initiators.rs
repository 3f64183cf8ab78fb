//! Other people's initiators against our target: libiscsi's tools and QEMU's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ropewalk_interop::{IQN, Image, Line, PATIENCE, Program, Requirement, Ropewalk, assert_same, require};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const LIBISCSI: Requirement = Requirement::Peers(&["iscsi-ls", "iscsi-inq", "iscsi-perf"]);
const QEMU: Requirement = Requirement::Peers(&["qemu-img", "qemu-io"]);

/// Runs a client to its end; it must succeed.
fn run(program: &str, arguments: &[&str]) -> String {
    let (status, lines) = Program::run(Command::new(program).args(arguments), PATIENCE).unwrap();
    let text = text(&lines);
    assert!(status.success(), "{program} {arguments:?}: {status}\n{text}");
    text
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn iscsi_ls_finds_the_target_and_the_sizes_of_its_luns() {
    if !require(&[LIBISCSI]) {
        return;
    }
    let target = Ropewalk::serve(&["0=ram:64M", "5=ram:2GiB,bs=4096"]).unwrap();
    let listed = run("iscsi-ls", &["-s", &format!("iscsi://{}", target.address())]);
    assert!(listed.contains(&format!("Target:{IQN} Portal:{},1", target.address())), "{listed}");
    assert!(listed.contains("Lun:0") && listed.contains("Lun:5"), "{listed}");
}

#[test]
fn iscsi_inq_reads_the_standard_inquiry_data_and_every_vital_product_data_page() {
    if !require(&[LIBISCSI]) {
        return;
    }
    let target = Ropewalk::serve(&["0=ram:64M"]).unwrap();
    let url = target.url(0);
    let standard = run("iscsi-inq", &[&url]);
    assert!(standard.contains("DIRECT_ACCESS"), "{standard}");
    // What only that page shows.
    let pages = [
        ("0", "LOGICAL_BLOCK_PROVISIONING"),
        ("128", "Unit Serial Number:"),
        ("131", "NAA"),
        ("176", "maximum unmap lba count:"),
        ("177", "Medium Rotation Rate"),
        ("178", "lbpu:1"),
    ];
    for (page, what) in pages {
        let shown = run("iscsi-inq", &["-e", "1", "-c", page, &url]);
        assert!(shown.contains(what), "page {page}: {shown}");
    }
}

#[test]
fn iscsi_perf_reads_in_order_and_at_random() {
    if !require(&[LIBISCSI]) {
        return;
    }
    let target = Ropewalk::serve(&["0=ram:64M"]).unwrap();
    for order in [&[][..], &["-r"]] {
        let url = target.url(0);
        let arguments = [order, &["-t", "1", "-m", "32", "-b", "256", &url]].concat();
        let report = run("iscsi-perf", &arguments);
        assert!(report.contains("finished"), "{report}");
    }
}

#[test]
fn qemu_img_copies_an_image_there_and_finds_it_unchanged() {
    if !require(&[QEMU]) {
        return;
    }
    let source = Image::random(64).unwrap();
    let there = source.beside("there.raw");
    let target = Ropewalk::serve(&[&format!("0=file:{there},size=64M,thin")]).unwrap();
    let url = target.url(0);
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", source.name(), &url]);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", source.name(), &url]);
    assert!(target.stop().unwrap().success());
    assert_same(source.path(), there).unwrap();
}

#[test]
fn qemu_img_copies_an_image_back() {
    if !require(&[QEMU]) {
        return;
    }
    let source = Image::random(64).unwrap();
    let back = source.beside("back.raw");
    let target = Ropewalk::serve(&[&format!("0=file:{},ro", source.name())]).unwrap();
    run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &target.url(0), &back]);
    assert_same(source.path(), back).unwrap();
}

#[test]
fn qemu_io_reads_back_the_patterns_it_wrote() {
    if !require(&[QEMU]) {
        return;
    }
    for lun in ["0=ram:64M", "0=ram:64M,bs=4096"] {
        let target = Ropewalk::serve(&[lun]).unwrap();
        let commands = [
            "write -P 0xa5 4096 128k",
            "write -P 0x5a 1M 8M",
            "aio_write -P 0x11 20M 4M",
            "aio_write -P 0x22 30M 4M",
            "aio_flush",
            "write -z 2M 1M",
            "discard 40M 1M",
            "flush",
            "read -P 0xa5 4096 128k",
            "read -P 0x5a 1M 1M",
            "read -P 0 2M 1M",
            "read -P 0x5a 3M 6M",
            "read -P 0x11 20M 4M",
            "read -P 0x22 30M 4M",
        ];
        let url = target.url(0);
        let mut arguments = vec!["-f", "raw"];
        arguments.extend(commands.iter().flat_map(|command| ["-c", command]));
        arguments.push(&url);
        let said = run("qemu-io", &arguments);
        assert!(!said.contains("verification failed") && !said.contains("error"), "{lun}: {said}");
    }
}

#[test]
fn qemu_io_cannot_write_to_a_read_only_lun() {
    if !require(&[QEMU]) {
        return;
    }
    let image = Image::random(16).unwrap();
    let target = Ropewalk::serve(&[&format!("0=file:{},ro", image.name())]).unwrap();
    let url = target.url(0);
    let mut client = Command::new("qemu-io");
    client.args(["-f", "raw", "-c", "write 0 4k", &url]);
    let (status, lines) = Program::run(&mut client, PATIENCE).unwrap();
    assert!(!status.success(), "{}", text(&lines));
    run("qemu-io", &["-r", "-f", "raw", "-c", "read 0 4k", &url]);
}

/// With credentials that nobody asks for, libiscsi tells its names and SessionType in both stages of the login.
#[test]
fn libiscsi_with_credentials_is_let_in_where_none_are_asked_for() {
    if !require(&[LIBISCSI]) {
        return;
    }
    let target = Ropewalk::serve(&["0=ram:1M"]).unwrap();
    let with_credentials = |url: &str| url.replace("iscsi://", "iscsi://alice%what-alice-knows@");
    let listed = run("iscsi-ls", &["-s", &with_credentials(&format!("iscsi://{}", target.address()))]);
    assert!(listed.contains("Lun:0"), "{listed}");
    let standard = run("iscsi-inq", &[&with_credentials(&target.url(0))]);
    assert!(standard.contains("DIRECT_ACCESS"), "{standard}");
}

/// Debian's libiscsi offers MD5 only, so a policy may keep it out.
#[test]
fn libiscsi_proves_itself_by_chap() {
    if !require(&[LIBISCSI]) {
        return;
    }
    let folder = Image::empty(0).unwrap();
    let secret = folder.beside("secret");
    fs::write(&secret, "what alice knows\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let chap = ["--chap-user", "alice", "--chap-secret-file", &secret];
    let inquire = |target: &Ropewalk, password: &str| {
        let mut inquiry = Command::new("iscsi-inq");
        inquiry
            .arg(target.url(0))
            .env("LIBISCSI_CHAP_USERNAME", "alice")
            .env("LIBISCSI_CHAP_PASSWORD", password);
        Program::run(&mut inquiry, PATIENCE).unwrap().0.success()
    };
    let target = Ropewalk::serve_with(&["0=ram:1M"], 1, &chap).unwrap();
    assert!(inquire(&target, "what alice knows"));
    assert!(!inquire(&target, "what bob has heard"));
    let strict = [&chap[..], &["--chap-algorithms", "sha3-256,sha256,sha1"]].concat();
    let strict = Ropewalk::serve_with(&["0=ram:1M"], 1, &strict).unwrap();
    assert!(!inquire(&strict, "what alice knows"));
}
