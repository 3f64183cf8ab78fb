//! However a command ends, the target is left without a session of its.

use crate::world::{Folder, MIB, TARGET, noise, ropewalk};
use std::time::{Duration, Instant};
use target::{Config, LunConfig, Mask, Server, TargetConfig};

/// Far less than the time for which a target keeps a session that was lost.
const LIMIT: Duration = Duration::from_secs(20);

async fn serve(lun: &str) -> Server {
    let mut node = TargetConfig::new(TARGET.parse().unwrap());
    node.luns.push(LunConfig { number: 0, backend: lun.parse().unwrap(), mask: Mask::default() });
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    Server::start(Config { listen, targets: vec![node], ..Config::default() }).await.unwrap()
}

fn url(server: &Server, lun: u16) -> String {
    format!("iscsi://{}/{TARGET}/{lun}", server.local_addrs()[0])
}

/// Returns what the command said on its standard error.
async fn expect_logout(server: &Server, arguments: &[&str], status: i32) -> String {
    let mut command = ropewalk(arguments);
    let outcome = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let words = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.status.code(), Some(status), "{arguments:?}: {words}");
    assert!(server.counters().accepted_connections > 0, "{arguments:?} has not logged in");
    let until = Instant::now() + LIMIT;
    while server.counters().sessions > 0 {
        assert!(Instant::now() < until, "{arguments:?} has left a session");
        tokio::task::yield_now().await;
    }
    words.into_owned()
}

#[tokio::test]
async fn a_command_about_a_disk_that_does_not_exist_logs_out() {
    let server = serve("ram:1MiB").await;
    expect_logout(&server, &["info", &url(&server, 7)], 1).await;
    expect_logout(&server, &["bench", &url(&server, 7)], 1).await;
}

#[tokio::test]
async fn a_copy_that_is_refused_logs_out_of_source_and_destination() {
    let (from, to) = (serve("ram:2MiB").await, serve("ram:1MiB").await);
    expect_logout(&from, &["copy", &url(&from, 0), &url(&to, 0)], 5).await;
    expect_logout(&to, &["copy", &url(&from, 0), &url(&to, 7)], 1).await;
    expect_logout(&from, &["copy", &url(&from, 0), "/nonexistent/image"], 1).await;
}

#[tokio::test]
async fn connections_that_were_logged_out_are_not_reported_as_lost() {
    let (folder, server) = (Folder::new(), serve("ram:2MiB").await);
    let image = folder.write("image", &noise(MIB));
    let said = expect_logout(&server, &["copy", &image, &url(&server, 0)], 0).await;
    assert!(!said.contains("lost"), "{said}");
}

#[tokio::test]
async fn a_bench_whose_requests_are_too_long_logs_out() {
    let server = serve("ram:64KiB").await;
    expect_logout(&server, &["bench", &url(&server, 0), "--request-size", "1M"], 1).await;
}
