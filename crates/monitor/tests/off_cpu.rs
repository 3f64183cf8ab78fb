//! Where a real thread waits.
#![cfg(feature = "bpf")]

use requirement::{Need, skip};
use ropewalk_monitor::{BpfError, OffCpu};
use rustix::thread::gettid;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;

#[test]
fn a_writer_is_seen_to_wait_for_room_in_the_send_buffer() {
    let off_cpu = match OffCpu::start(std::process::id()) {
        Err(error @ BpfError::NoRights(_)) => return skip(Need::Bpf, &error.to_string()),
        outcome => outcome.unwrap(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut there = listener.accept().unwrap().0;
    let (to, thread) = channel();
    // More than both ends have room for.
    const BYTES: usize = 64 << 20;
    let write = move || {
        to.send(gettid().as_raw_nonzero()).unwrap();
        here.write_all(&vec![7; BYTES]).unwrap();
    };
    let writer = std::thread::Builder::new().name("writer".to_owned()).spawn(write).unwrap();
    let thread = thread.recv().unwrap();
    let state = format!("/proc/self/task/{thread}/stat");
    // It sleeps, since nobody reads.
    while !fs::read_to_string(&state).unwrap().contains(") S ") {
        std::thread::yield_now();
    }
    there.read_exact(&mut vec![0; BYTES]).unwrap();
    writer.join().unwrap();
    let report = off_cpu.stop().unwrap();
    let mut of_writer = report.stacks.iter().filter(|stack| stack.name == "writer");
    let wait =
        of_writer.find(|stack| stack.waiting()[0] == "sk_stream_wait_memory").expect("it waited there");
    assert!(wait.frames.iter().any(|frame| frame == "tcp_sendmsg_locked"), "{wait:?}");
    assert_eq!(wait.thread, thread.get().cast_unsigned());
    assert!(
        wait.waits > 0 && wait.waited_ns > 0 && wait.waited_ns <= wait.ended_ns - wait.begun_ns,
        "{wait:?}"
    );
    assert!(report.begun_ns <= wait.begun_ns && wait.ended_ns <= report.ended_ns, "{wait:?}");
    assert!(report.calls > 0 && report.busy_ns > 0);
}
