//! One experiment at a time on a machine: two would compete for the hosts' processors, and no run would notice.

use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use tokio::io::AsyncReadExt;

/// The abstract name of a socket that the running experiment holds. The kernel frees it when the process ends, however
/// it ends.
const NAME: &str = "ropewalk lab run";

/// An experiment's turn, which lasts until this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    /// Nobody accepts its connections: they end with it.
    _held: UnixListener,
}

impl Turn {
    /// Waits for the end of the experiment whose turn it is, and calls `tell` before, if there is one.
    pub(super) async fn wait(tell: impl FnOnce()) -> io::Result<Self> {
        Self::wait_for(NAME, tell).await
    }

    async fn wait_for(name: &str, tell: impl FnOnce()) -> io::Result<Self> {
        let address = SocketAddr::from_abstract_name(name)?;
        let mut tell = Some(tell);
        loop {
            match UnixListener::bind_addr(&address) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => {
                    if let Some(tell) = tell.take() {
                        tell();
                    }
                    end_of_turn(&address).await?;
                }
                bound => return bound.map(|held| Self { _held: held }),
            }
        }
    }
}

async fn end_of_turn(address: &SocketAddr) -> io::Result<()> {
    let stream = match UnixStream::connect_addr(address) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(()),
        connected => connected?,
    };
    stream.set_nonblocking(true)?;
    // Whatever ends the wait, the name tells who is next.
    let _ = tokio::net::UnixStream::from_std(stream)?.read_u8().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_second_experiment_waits_for_the_end_of_the_first() {
        let name = format!("ropewalk test of turns {}", std::process::id());
        let first = Turn::wait_for(&name, || panic!("there is none before it")).await.unwrap();
        let mut is_told = false;
        let mut second = Box::pin(Turn::wait_for(&name, || is_told = true));
        assert!(timeout(Duration::ZERO, &mut second).await.is_err(), "it must wait");
        drop(first);
        second.await.unwrap();
        assert!(is_told);
    }
}
