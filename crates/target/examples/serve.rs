//! Serves LUNs on loopback until it is killed: `serve PORT LUN...`, each LUN as `0=ram:1GiB`.

use ropewalk_target::{Config, LunConfig, Mask, NumberedLunSpec, Server, TargetConfig};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().ok_or("a port is missing")?.parse()?;
    let mut served = TargetConfig::new("iqn.2026-01.net.example:disk".parse()?);
    for lun in arguments {
        let NumberedLunSpec { number, spec } = lun.parse()?;
        served.luns.push(LunConfig { number, backend: spec, mask: Mask::default() });
    }
    let listen = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))];
    let server = Server::start(Config { listen, targets: vec![served], ..Config::default() }).await?;
    println!("{}", server.local_addrs()[0]);
    std::future::pending::<()>().await;
    Ok(())
}
