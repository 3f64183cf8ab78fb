//! The threads of the test's process.

use rustix::thread::Pid;
use std::fs;

/// Those with this name. A thread that ends meanwhile is not among them.
pub fn named(name: &str) -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").expect("a process may look at its threads").flatten();
    let has_name = |thread: &fs::DirEntry| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|found| found.trim_end() == name)
    };
    let number = |thread: fs::DirEntry| Pid::from_raw(thread.file_name().to_str()?.parse().ok()?);
    threads.filter(has_name).filter_map(number).collect()
}
