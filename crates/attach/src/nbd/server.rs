//! The unix socket, and its clients.

use super::stopped;
use super::transmission::serve;
use crate::Disk;
use rustix::fs::Mode;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The most clients at once; each may hold memory for its requests.
const CLIENTS_MAX: usize = 16;

/// How long to leave a listener alone that cannot accept, as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A server on a unix socket, which goes with it.
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    clients: watch::Sender<usize>,
}

impl Server {
    /// Listens at a path, where only this process's user may connect. A socket that a dead server has left there is
    /// replaced.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if a server listens there or something else has the name; the system's.
    pub fn bind(path: &Path) -> io::Result<Self> {
        // What is no socket refuses connections, too.
        let is_socket = || std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        if let Err(error) = BlockingStream::connect(path)
            && error.kind() == io::ErrorKind::ConnectionRefused
            && is_socket()
        {
            std::fs::remove_file(path)?;
        }
        // Narrower at once than a change of the mode after the creation.
        let mask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
        let listener = UnixListener::bind(path);
        rustix::process::umask(mask);
        Ok(Self { listener: listener?, path: path.to_owned(), clients: watch::Sender::new(0) })
    }

    /// The number of clients, as it changes.
    #[must_use]
    pub fn clients(&self) -> watch::Receiver<usize> {
        self.clients.subscribe()
    }

    /// Serves clients until `stop` becomes true, and then what they have asked for.
    pub async fn run(self, disk: Disk, mut stop: watch::Receiver<bool>) {
        let mut serving = JoinSet::new();
        let stopping = stop.clone();
        loop {
            let room = serving.len() < CLIENTS_MAX;
            tokio::select! {
                accepted = self.listener.accept(), if room => match accepted {
                    Ok((stream, _)) => {
                        serving.spawn(attend(stream, disk.clone(), stopping.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept an NBD client");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                Some(_) = serving.join_next() => {}
                () = stopped(&mut stop) => break,
            }
            self.clients.send_replace(serving.len());
        }
        while serving.join_next().await.is_some() {}
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whoever has removed it already wanted the same.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn attend(stream: UnixStream, disk: Disk, stop: watch::Receiver<bool>) {
    let (reader, writer) = stream.into_split();
    if let Err(error) = serve(reader, writer, &disk, stop).await {
        tracing::info!(%error, "an NBD client is gone");
    }
}
