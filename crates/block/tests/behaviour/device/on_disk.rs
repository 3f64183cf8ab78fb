//! A file in a directory of its own, by each engine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use requirement::{Need, skip};
use ropewalk_block::{Engine, EngineChoice, File, FileOptions};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::Device;

/// Runs the test by threads and, where the system grants one, by io_uring.
pub fn by_each_engine(test: impl Fn(&Engine)) {
    each_engine().iter().for_each(test);
}

/// Threads, and io_uring where the system grants one.
pub fn each_engine() -> Vec<Engine> {
    let mut engines = vec![Engine::new(EngineChoice::Threads).unwrap()];
    match Engine::new(EngineChoice::IoUring) {
        Ok(engine) => engines.push(engine),
        Err(error) => skip(Need::IoUring, &format!("with threads only: {error}")),
    }
    engines
}

pub fn device(path: &Path, options: &FileOptions, engine: &Engine) -> Device {
    let file = File::open(path, options, engine).unwrap();
    Device::with_world(Arc::new(file), vec![Box::new(EventLoop::of(engine))])
}

/// A new file that is gone with the device.
pub fn scratch(options: &FileOptions, engine: &Engine) -> Device {
    let folder = tempfile::tempdir().unwrap();
    let file = File::open(folder.path().join("disk"), options, engine).unwrap();
    Device::with_world(Arc::new(file), vec![Box::new(EventLoop::of(engine)), Box::new(folder)])
}

/// Reaps an engine whenever there is something to reap.
pub struct EventLoop {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl EventLoop {
    pub fn of(engine: &Engine) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (engine, stopped) = (engine.clone(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let Some(descriptor) = engine.reap_fd() else { return };
            let look_up = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            while !stopped.load(Ordering::Relaxed) {
                let mut ready = [PollFd::new(&descriptor, PollFlags::IN)];
                rustix::event::poll(&mut ready, Some(&look_up)).unwrap();
                engine.reap();
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
