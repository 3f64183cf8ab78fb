//! `ropewalk serve`: how it is configured, who gets in, how it stops.

use crate::world::{Folder, MIB, Server, TARGET, noise, ropewalk, run, signal};
use initiator::{Config, Connections};
use rustix::fs::{MemfdFlags, SealFlags};
use std::os::fd::AsRawFd;

#[test]
fn a_configuration_file_describes_several_targets() {
    let folder = Folder::new();
    let config = r#"
        [[target]]
        name = "iqn.2026-11.com.example:one"
        lun = [{ number = 0, backend = "ram:1MiB" }, { number = 3, backend = "ram:2MiB,bs=4096" }]

        [[target]]
        name = "iqn.2026-11.com.example:two"
        lun = [{ number = 0, backend = "ram:1MiB" }]
    "#;
    let server = Server::with(&["--config", &folder.write("config.toml", config.as_bytes())]);
    let list = run(&["ls", &server.address]).expect(0).stdout();
    assert!(list.contains("example:one") && list.contains("example:two"), "{list}");
    let url = format!("iscsi://{}/iqn.2026-11.com.example:one/3", server.address);
    assert!(run(&["info", &url]).expect(0).stdout().contains("4096 bytes"));
}

#[test]
fn a_configuration_with_a_mistake_is_refused_by_its_place() {
    let folder = Folder::new();
    let config =
        folder.write("config.toml", b"[[target]]\nname = \"iqn.2026-11.com.example:one\"\nluns = []\n");
    let refused = run(&["serve", "--config", &config]).expect(2).stderr();
    assert!(refused.contains("config.toml") && refused.contains("luns"), "{refused}");
}

#[test]
fn whoever_does_not_know_the_secret_stays_outside() {
    let folder = Folder::new();
    let secret = folder.write_secret("secret", b"correct horse battery\n");
    let luns = ["--target", TARGET, "--lun", "0=ram:1MiB"];
    let server =
        Server::with(&[&luns[..], &["--chap-user", "backup", "--chap-secret-file", &secret]].concat());
    run(&["info", &server.url(0)]).expect(1);
    let credentials =
        folder.write_secret("credentials", b"username = backup\npassword = correct horse battery\n");
    run(&["info", "--chap-file", &credentials, &server.url(0)]).expect(0);
    run(&["info", "--chap-file", &credentials, "--chap-algorithms", "md5", &server.url(0)]).expect(0);
    let mut wrong = ropewalk(&["info", &server.url(0)]);
    wrong.env("LIBISCSI_CHAP_USERNAME", "backup").env("LIBISCSI_CHAP_PASSWORD", "incorrect horse battery");
    assert_eq!(wrong.output().unwrap().status.code(), Some(1));
}

#[test]
fn secrets_that_others_can_read_are_refused_and_not_shown() {
    let folder = Folder::new();
    let secret = folder.write("secret", b"correct horse battery\n");
    let luns = ["--target", TARGET, "--lun", "0=ram:1MiB"];
    let arguments =
        [&["serve"], &luns[..], &["--chap-user", "backup", "--chap-secret-file", &secret]].concat();
    let refused = run(&arguments).expect(1).stderr();
    assert!(refused.contains("chmod 600") && !refused.contains("horse"), "{refused}");

    let text = format!(
        "[[target]]\nname = \"{TARGET}\"\nlun = [{{ number = 0, backend = \"ram:1MiB\" }}]\n\
         chap.initiator = {{ user = \"backup\", secret = \"correct horse battery\" }}\n"
    );
    let config = folder.write("config.toml", text.as_bytes());
    let refused = run(&["serve", "--config", &config]).expect(2).stderr();
    assert!(refused.contains("chmod 600") && !refused.contains("horse"), "{refused}");

    let misspelt = folder.write_secret("misspelt.toml", text.replace("user =", "usr =").as_bytes());
    let refused = run(&["serve", "--config", &misspelt]).expect(2).stderr();
    assert!(refused.contains("misspelt.toml, line 4") && !refused.contains("horse"), "{refused}");
}

#[test]
fn a_mask_of_names_keeps_other_initiators_out() {
    let luns = ["--target", TARGET, "--lun", "0=ram:1MiB"];
    let server =
        Server::with(&[&luns[..], &["--initiator-mask", "iqn.2026-11.com.example:friend*"]].concat());
    run(&["info", &server.url(0)]).expect(1);
    run(&["info", "--initiator-name", "iqn.2026-11.com.example:friend-1", &server.url(0)]).expect(0);
}

#[test]
fn what_was_written_is_in_the_file_after_a_stop() {
    for name in ["TERM", "INT", "HUP"] {
        let folder = Folder::new();
        let lun = format!("0=file:{},size=4MiB,volatile", folder.text("disk"));
        let server = Server::with_luns(&[&lun]);
        let image = folder.write("image", &noise(4 * MIB));
        run(&["copy", &image, &server.url(0)]).expect(0);
        assert_eq!(server.stop_by(name), 0, "{name}");
        assert!(folder.read("disk") == noise(4 * MIB), "{name}");
    }
}

#[test]
fn a_server_that_cannot_flush_when_it_stops_fails() -> Result<(), Box<dyn std::error::Error>> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let disk = rustix::fs::memfd_create("disk", flags)?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), disk.as_raw_fd());
    let server = Server::with_luns(&[&format!("0=file:{path},size=1MiB,volatile")]);
    let url = server.url(0).parse()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let session =
            initiator::connect(&url, Config { connections: Connections::Fixed(1), ..Config::default() })
                .await?;
        let lun = session.lun(0).await?;
        let zeroes = lun.allocate(512)?;
        lun.write(0, zeroes, false).await?;
        drop(lun);
        Ok::<_, Box<dyn std::error::Error>>(session.close().await?)
    })?;
    // The server's cache cannot be written back any more.
    rustix::fs::fcntl_add_seals(&disk, SealFlags::WRITE)?;
    assert_eq!(server.terminate(), 1);
    Ok(())
}

#[test]
fn a_server_stops_in_order_when_its_terminal_hangs_up_and_takes_no_more_words() {
    let server = Server::unheard(&["--target", TARGET, "--lun", "0=ram:1MiB"]);
    run(&["info", &server.url(0)]).expect(0);
    assert_eq!(server.stop_by("HUP"), 0);
}

#[test]
fn a_server_under_nohup_outlives_its_terminal() {
    let server = Server::under_nohup(&["--target", TARGET, "--lun", "0=ram:1MiB"]);
    signal(server.id(), "HUP");
    run(&["info", &server.url(0)]).expect(0);
    assert_eq!(server.terminate(), 0);
}
