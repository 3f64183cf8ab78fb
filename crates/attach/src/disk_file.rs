//! A disk as one file, in a FUSE mount that is nothing but this file.
//!
//! The kernel caches none of it (`FOPEN_DIRECT_IO`), and sends what it has to read and write side by side. Linux's loop
//! driver makes a block device of the file: its flush arrives as fsync, its discard as a punched hole.

use crate::Disk;
use crate::start::start;
use block::Buffer;
use fuser::{
    BackgroundSession, Config, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty,
    ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;

/// The longest request; the kernel sends no longer one anyway.
const REQUEST_BYTES: u32 = 1 << 20;

/// The most requests under way: as many as a loop device has.
const REQUESTS_MAX: u16 = 128;

/// How long the kernel may believe in the file's attributes. They never change.
const UNCHANGED: Duration = Duration::from_secs(3600);

/// A filesystem whose root is a file: the disk.
pub struct DiskFile {
    disk: Disk,
    runtime: Handle,
    attributes: FileAttr,
}

/// A mounted [`DiskFile`]. It is unmounted when this is dropped, or by [`unmount`].
pub struct Mounted(BackgroundSession);

impl DiskFile {
    /// A file for the disk, whose operations run on the given runtime.
    #[must_use]
    pub fn new(disk: Disk, runtime: Handle) -> Self {
        let properties = disk.properties();
        let now = SystemTime::now();
        let attributes = FileAttr {
            ino: INodeNo::ROOT,
            size: properties.bytes(),
            blocks: properties.bytes() / 512,
            atime: now,
            mtime: now,
            ctime: now,
            crtime: now,
            kind: FileType::RegularFile,
            perm: if properties.read_only { 0o400 } else { 0o600 },
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: properties.block_bytes,
            flags: 0,
        };
        Self { disk, runtime, attributes }
    }

    /// Mounts it over an existing file. A thread of its own takes the kernel's requests.
    ///
    /// # Errors
    /// The system's.
    pub fn mount(self, path: &Path) -> io::Result<Mounted> {
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("ropewalk".to_owned()),
            MountOption::Subtype("ropewalk".to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoExec,
            if self.disk.properties().read_only { MountOption::RO } else { MountOption::RW },
        ];
        fuser::spawn_mount(self, path, &config).map(Mounted)
    }

    /// The part of the file that begins here and ends with it or after `bytes`.
    fn inside(&self, offset: u64, bytes: u32) -> u32 {
        let rest = self.attributes.size.saturating_sub(offset);
        u32::try_from(rest).unwrap_or(u32::MAX).min(bytes)
    }

    /// Whether holes and zeroes can be made as the kernel wants them: a hole must read as zeroes.
    fn may_unmap(&self, mode: i32) -> Result<bool, Errno> {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let wanted = mode - FallocateFlags::KEEP_SIZE;
        if wanted == FallocateFlags::ZERO_RANGE {
            Ok(false)
        } else if wanted == FallocateFlags::PUNCH_HOLE && self.disk.properties().thin.is_some() {
            Ok(true)
        } else {
            Err(Errno::OPNOTSUPP)
        }
    }
}

impl Mounted {
    /// Waits, on this thread, until somebody unmounts it.
    ///
    /// # Errors
    /// The system's, if the kernel could not be served any longer.
    pub fn wait(self) -> io::Result<()> {
        self.0.join()
    }
}

impl Filesystem for DiskFile {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Kernels that cannot do so send one request at a time.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        // What is asked for is below every limit; where it is not, the limit is right.
        let _ = config.set_max_write(REQUEST_BYTES);
        let _ = config.set_max_background(REQUESTS_MAX);
        let _ = config.set_congestion_threshold(REQUESTS_MAX);
        Ok(())
    }

    fn getattr(&self, _request: &Request, _file: INodeNo, _open: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&UNCHANGED, &self.attributes);
    }

    fn open(&self, _request: &Request, _file: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if self.disk.properties().read_only && flags.acc_mode() != OpenAccMode::O_RDONLY {
            return reply.error(fuser::Errno::EROFS);
        }
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES);
    }

    fn read(
        &self,
        _request: &Request,
        _file: INodeNo,
        _open: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let (disk, bytes) = (self.disk.clone(), self.inside(offset, size));
        start(&self.runtime, async move {
            match read_any(&disk, offset, bytes).await {
                Ok((buffer, range)) => reply.data(&buffer[range]),
                Err(error) => reply.error(to_fuse(error)),
            }
        });
    }

    fn write(
        &self,
        _request: &Request,
        _file: INodeNo,
        _open: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let disk = self.disk.clone();
        // While no memory is left, this thread takes no further requests. The runtime's own thread frees some.
        let mut buffer = match self.runtime.block_on(disk.buffer(data.len())) {
            Ok(buffer) => buffer,
            Err(error) => return reply.error(to_fuse(error)),
        };
        buffer.copy_from_slice(data);
        start(&self.runtime, async move {
            let bytes = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
            match disk.write(offset, buffer.share(), false).await {
                Ok(()) => reply.written(bytes),
                Err(error) => reply.error(to_fuse(error)),
            }
        });
    }

    /// Somebody has closed the file. That promises nothing.
    fn flush(
        &self,
        _request: &Request,
        _file: INodeNo,
        _open: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        _file: INodeNo,
        _open: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let disk = self.disk.clone();
        start(&self.runtime, async move { answer(reply, disk.flush().await) });
    }

    fn fallocate(
        &self,
        _request: &Request,
        _file: INodeNo,
        _open: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let may_unmap = match self.may_unmap(mode) {
            Ok(may_unmap) => may_unmap,
            Err(error) => return reply.error(to_fuse(error)),
        };
        let disk = self.disk.clone();
        start(&self.runtime, async move {
            answer(reply, disk.zero(offset, length, may_unmap, false).await);
        });
    }
}

/// Unmounts a disk's file; `false` if programs still use it.
///
/// # Errors
/// The system's.
pub fn unmount(file: &Path) -> io::Result<bool> {
    match rustix::mount::unmount(file, UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(true),
        Err(Errno::BUSY) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Unmounts a disk's file whoever uses it, and whether its server lives or not. Programs that have it open keep it.
///
/// # Errors
/// The system's.
pub fn unmount_at_once(file: &Path) -> io::Result<()> {
    Ok(rustix::mount::unmount(file, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?)
}

/// Reads whole blocks, and says which part of them was asked for.
async fn read_any(disk: &Disk, offset: u64, bytes: u32) -> Result<(Buffer, Range<usize>), Errno> {
    let block = u64::from(disk.properties().block_bytes);
    let before = offset % block;
    let whole = (before + u64::from(bytes)).next_multiple_of(block);
    let whole = u32::try_from(whole).map_err(|_| Errno::INVAL)?;
    let buffer = disk.read(offset - before, whole).await?;
    // Less than a block.
    let first = usize::try_from(before).map_err(|_| Errno::INVAL)?;
    Ok((buffer, first..first + bytes as usize))
}

fn answer(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(to_fuse(error)),
    }
}

fn to_fuse(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error.raw_os_error())
}
