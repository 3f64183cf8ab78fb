//! A disk that programs of this machine use.

use super::place::{Held, Name, Place, Record, Way};
use super::source::{Opened, Source};
use crate::exit::Failed;
use crate::signals::Interrupts;
use anyhow::Context;
use attach::nbd::Server;
use attach::{Disk, DiskFile, LoopDevice, Mounted};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Where the stable names of block devices are.
const LINKS: &str = "/dev/ropewalk";

/// How often to look whether a device is still used that is to go.
const LOOK: Duration = Duration::from_millis(200);

/// A disk and its way to programs.
pub(super) struct Served {
    disk: Disk,
    held: Held,
    record: Record,
    front: Front,
}

/// What stands between the disk and its users.
enum Front {
    Loop {
        device: LoopDevice,
        /// Ends with the mount.
        serving: JoinHandle<()>,
    },
    Nbd {
        serving: JoinHandle<()>,
        stop: watch::Sender<bool>,
        clients: watch::Receiver<usize>,
    },
}

impl Served {
    /// Makes a block device, or a socket for NBD if there is a path for one.
    pub(super) async fn begin(
        opened: Opened,
        source: &Source,
        name: &Name,
        socket: Option<&Path>,
    ) -> Result<Self, Failed> {
        let Opened { disk, identity, .. } = opened;
        let held = Place::take(name)?;
        // Another attachment of this disk may begin at the same time.
        let _alone = Place::one_at_a_time()?;
        let read_only = disk.properties().read_only;
        let allowed = identity.as_deref().map_or(Ok(()), |identity| Place::refuse_again(identity, read_only));
        let begun = match (allowed, socket) {
            (Err(refused), _) => Err(refused),
            (Ok(()), Some(socket)) => serve_nbd(&disk, socket),
            (Ok(()), None) => make_device(&disk, held.place(), name).await,
        };
        let (front, way) = begun.inspect_err(|_| {
            // Nothing is attached, and nothing is to be listed. What cannot be removed is used by the next attempt.
            let _ = held.place().remove();
        })?;
        let record = Record {
            name: name.to_string(),
            source: source.to_string(),
            bytes: disk.properties().bytes(),
            identity,
            read_only,
            pid: std::process::id(),
            way,
            failure: None,
        };
        held.write(&record)?;
        Ok(Self { disk, held, record, front })
    }

    /// What programs open.
    pub(super) fn path(&self) -> &Path {
        self.record.way.path()
    }

    /// Where a server in the background logs.
    pub(super) fn log(&self) -> PathBuf {
        self.held.place().log()
    }

    /// Serves the disk until somebody asks for its end and nobody uses it any more. Then makes all durable.
    pub(super) async fn until_detached(mut self, interrupts: &mut Interrupts) -> Result<(), Failed> {
        let ended = match &mut self.front {
            Front::Loop { device, serving } => {
                serve_loop(device, &self.held.place().file(), serving, interrupts).await
            }
            Front::Nbd { serving, stop, clients } => {
                let noted = |clients| {
                    if let Way::Nbd { clients: noted, .. } = &mut self.record.way {
                        *noted = clients;
                    }
                    self.held.write(&self.record)
                };
                serve_clients(serving, stop, clients, noted, interrupts).await
            }
        };
        let flushed = self.disk.flush().await.map_err(|_| {
            anyhow::anyhow!("writes were lost that had been acknowledged: the disk's last flush failed")
        });
        let outcome = ended.and(flushed);
        self.leave(&outcome);
        outcome.map_err(Failed::from)
    }

    /// Takes the names away. A failure stays on record for whoever detaches the disk.
    fn leave(mut self, outcome: &anyhow::Result<()>) {
        if let Way::Loop { link: Some(link), .. } = &self.record.way {
            let _ = fs::remove_file(link);
        }
        let left = match outcome {
            Ok(()) => self.held.place().remove().map_err(anyhow::Error::from),
            Err(error) => {
                self.record.failure = Some(format!("{error:#}"));
                self.held.write(&self.record)
            }
        };
        if let Err(error) = left {
            tracing::warn!("{error:#}");
        }
    }
}

fn serve_nbd(disk: &Disk, socket: &Path) -> anyhow::Result<(Front, Way)> {
    let socket = std::path::absolute(socket)?;
    let server = Server::bind(&socket).with_context(|| format!("cannot listen at {}", socket.display()))?;
    let (stop, stopping) = watch::channel(false);
    let clients = server.clients();
    let serving = tokio::spawn(server.run(disk.clone(), stopping));
    Ok((Front::Nbd { serving, stop, clients }, Way::Nbd { socket, clients: 0 }))
}

async fn make_device(disk: &Disk, place: &Place, name: &Name) -> anyhow::Result<(Front, Way)> {
    let file = place.file();
    clear(&file);
    fs::write(&file, []).with_context(|| format!("cannot write {}", file.display()))?;
    let mounted = DiskFile::new(disk.clone(), Handle::current()).mount(&file);
    let mounted =
        mounted.context("cannot mount by FUSE; this needs root and /dev/fuse, --nbd needs neither")?;
    let (block_bytes, read_only, over) =
        (disk.properties().block_bytes, disk.properties().read_only, file.clone());
    let device = aside(move || LoopDevice::over(&over, block_bytes, read_only)).await?;
    let device = device.context("cannot make a loop device; this needs root, --nbd does not")?;
    let link = link(name, device.path());
    let way = Way::Loop { device: device.path().to_owned(), file, link };
    let serving = tokio::task::spawn_blocking(move || serve_mount(mounted));
    Ok((Front::Loop { device, serving }, way))
}

/// Takes away what a server has left that was killed before it could note it.
fn clear(file: &Path) {
    for device in LoopDevice::all_over(file).unwrap_or_default() {
        let _ = device.detach();
    }
    let _ = attach::unmount_at_once(file);
}

/// Runs what may need the disk on another thread, while this one serves it.
async fn aside<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> anyhow::Result<T> {
    Ok(tokio::task::spawn_blocking(what).await?)
}

fn serve_mount(mounted: Mounted) {
    if let Err(error) = mounted.wait() {
        tracing::error!(%error, "the kernel's requests cannot be read any more");
    }
}

/// A name for the device that stays the same.
fn link(name: &Name, device: &Path) -> Option<PathBuf> {
    let link = Path::new(LINKS).join(name.to_string());
    let make = || {
        fs::create_dir_all(LINKS)?;
        // One that a dead server has left.
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(device, &link)
    };
    make().inspect_err(|error| tracing::warn!(%error, "no name in {LINKS}")).ok()?;
    Some(link)
}

/// Serves a loop device until it is to go and nobody has it open any more.
async fn serve_loop(
    device: &LoopDevice,
    file: &Path,
    serving: &mut JoinHandle<()>,
    interrupts: &mut Interrupts,
) -> anyhow::Result<()> {
    tokio::select! {
        // Somebody has unmounted it: not this process's business.
        _ = &mut *serving => return Ok(()),
        _ = interrupts.next() => {}
    }
    // The device goes at once, or when its last user closes it. Only then can the file be unmounted.
    let going = device.clone();
    let gone = aside(move || going.detach()).await?;
    gone.with_context(|| format!("cannot detach {}", device.path().display()))?;
    tokio::select! {
        unmounted = unmounted(file) => unmounted?,
        _ = interrupts.again() => {
            attach::unmount_at_once(file)?;
            anyhow::bail!("interrupted twice: programs that used the disk got errors");
        }
    }
    serving.await?;
    Ok(())
}

/// Unmounts the file as soon as nobody uses it.
async fn unmounted(file: &Path) -> anyhow::Result<()> {
    let mut told = false;
    loop {
        let file = file.to_owned();
        if aside(move || attach::unmount(&file)).await?? {
            return Ok(());
        }
        if !told {
            tracing::info!("programs still use the disk: waiting for them");
            told = true;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Serves NBD until somebody asks for the end, and then what clients have asked for. Their number is noted as it changes.
async fn serve_clients(
    serving: &mut JoinHandle<()>,
    stop: &watch::Sender<bool>,
    clients: &mut watch::Receiver<usize>,
    mut noted: impl FnMut(usize) -> anyhow::Result<()>,
    interrupts: &mut Interrupts,
) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            _ = interrupts.next() => break,
            changed = clients.changed() => {
                changed?;
                if let Err(error) = noted(*clients.borrow_and_update()) {
                    tracing::warn!(error = format!("{error:#}"), "cannot note the number of clients");
                }
            }
        }
    }
    stop.send_replace(true);
    tokio::select! {
        ended = serving => Ok(ended?),
        _ = interrupts.again() => Err(anyhow::anyhow!("interrupted twice: did not wait for clients")),
    }
}
