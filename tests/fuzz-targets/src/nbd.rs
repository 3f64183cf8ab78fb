//! What an NBD client says to an attached disk.

use attach::Disk;
use attach::nbd::serve;
use block::Ram;
use std::sync::Arc;
use tokio::sync::watch;

/// The disk's blocks.
const BLOCKS: u64 = 128;

/// Any bytes as all that a client ever sends: the server answers them, and ends when they do.
///
/// # Panics
/// If it does not end.
pub fn nbd_client(input: &[u8]) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
    let Ok(ram) = Ram::new(512, BLOCKS) else { return };
    let disk = Disk::new(Arc::new(ram), false);
    let (_stop, stopping) = watch::channel(false);
    // The client's end closes with its last byte, so whatever it was is answered or an error.
    let _ = runtime.block_on(serve(input, tokio::io::sink(), &disk, stopping));
}
