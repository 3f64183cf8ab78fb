//! How a lab begins and ends. Its own program: it looks for namespaces by their numbers, which the kernel may give again
//! to the labs of other tests.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

mod threads;
#[path = "behaviour/world/mod.rs"]
#[allow(dead_code, reason = "the other programs use the rest")]
mod world;

use requirement::{Need, skip};
use ropewalk_lab::{Lab, Rights, Topology, in_user_namespace, ping};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use rustix::thread::{CpuSet, sched_getaffinity};
use socket2::SockRef;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use world::{ONE_TEST, again, assert_ran, in_lab, lab, link, topology};

/// Set for a test that was started again to be killed, or without root.
const PART: &str = "ROPEWALK_TEST_PART";

/// What the process says that is to be killed: a process that it started, and the namespace of its lab, if it has one.
const READY: &str = "ready: ";

#[test]
fn nothing_is_left_of_a_lab_whose_process_was_killed() {
    if std::env::var_os(PART).is_some() {
        return in_lab(build_and_wait_to_be_killed);
    }
    in_lab(|| {
        let (mut builder, ready) = start_to_be_killed();
        let ready = ready.expect("it builds a lab");
        let (program, namespace) = ready.split_once(' ').unwrap();
        let program = process(program);
        assert!(is_used(namespace));
        builder.kill().unwrap();
        builder.wait().unwrap();
        wait_until_ended(&program);
        assert!(!is_used(namespace), "a process is still in the namespace");
    });
}

/// This test once more, and what it says when it is ready; nothing if it ended without.
fn start_to_be_killed() -> (Child, Option<String>) {
    let mut process = again().env(PART, "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut ran = false;
    let ready = lines.find_map(|line| {
        ran |= line == ONE_TEST;
        Some(line.split_once(READY)?.1.to_owned())
    });
    assert!(ran, "no test of this name was run");
    (process, ready)
}

fn process(id: &str) -> OwnedFd {
    pidfd_open(Pid::from_raw(id.parse().unwrap()).unwrap(), PidfdFlags::empty()).unwrap()
}

fn wait_until_ended(process: &OwnedFd) {
    poll(&mut [PollFd::new(process, PollFlags::IN)], None).unwrap();
}

fn build_and_wait_to_be_killed() {
    let lab = lab(link(100, Duration::from_millis(1)));
    let mut program = Command::new("sleep");
    program.arg("1000").stdout(Stdio::null());
    lab.client.namespace.put(&mut program);
    let mut program = program.spawn().unwrap();
    let namespace = lab.client.namespace.run(|| fs::metadata("/proc/thread-self/ns/net")).unwrap().unwrap();
    println!("{READY}{} {}", program.id(), namespace.ino());
    program.wait().unwrap();
}

#[test]
fn a_process_in_a_user_namespace_ends_with_the_one_that_started_it_also_if_that_was_killed() {
    if std::env::var_os(PART).is_some() {
        return start_another_and_wait_to_be_killed();
    }
    let (mut starter, program) = start_to_be_killed();
    let Some(program) = program else {
        assert!(starter.wait().unwrap().success(), "it failed for another reason than a refusal");
        return skip(Need::Netns, "a user namespace is refused here");
    };
    let program = process(&program);
    starter.kill().unwrap();
    starter.wait().unwrap();
    wait_until_ended(&program);
}

fn start_another_and_wait_to_be_killed() {
    let mut program = Command::new("sleep");
    program.arg("1000").stdout(Stdio::null());
    in_user_namespace(&mut program);
    let Ok(mut program) = program.spawn() else { return };
    println!("{READY}{}", program.id());
    program.wait().unwrap();
}

/// Whether a process is in the namespace.
fn is_used(namespace: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut namespaces = processes.filter_map(|process| fs::metadata(process.path().join("ns/net")).ok());
    namespaces.any(|used| used.ino().to_string() == namespace)
}

#[test]
fn a_lab_is_built_without_root() {
    let is_first = std::env::var_os(PART).is_none();
    let rights = Rights::of_this_process();
    if is_first && geteuid().is_root() && rights.is_ok_and(|rights| rights == Rights::Root) {
        return run_as_nobody();
    }
    in_lab(|| {
        let lab = lab(link(100, Duration::from_millis(1)));
        assert_eq!(lab.rights, Rights::UserNamespace);
        assert_eq!(ping(&lab.client.namespace, lab.server.addresses[0], 1).unwrap().len(), 1);
        let report = lab.relay.stop();
        assert!(!report.has_priority, "and it says so");
    });
}

#[test]
fn no_processor_halts_while_a_relay_works() {
    in_lab(|| {
        let lab = lab(link(100, Duration::from_millis(1)));
        let mut kept_awake = CpuSet::new();
        for thread in threads::named("relay-awake") {
            // SAFETY: it takes and returns integers.
            let policy = unsafe { libc::sched_getscheduler(thread.as_raw_pid()) };
            assert_eq!(policy, libc::SCHED_IDLE, "it gives way to everything else");
            let places = sched_getaffinity(Some(thread)).unwrap();
            assert_eq!(places.count(), 1);
            kept_awake.set((0..CpuSet::MAX_CPU).find(|processor| places.is_set(*processor)).unwrap());
        }
        assert_eq!(kept_awake, sched_getaffinity(None).unwrap());
        assert!(lab.relay.stop().keeps_processors_awake);
    });
}

/// This test once more.
fn run_as_nobody() {
    const NOBODY: u32 = 65534;
    // Where this program is, nobody may have no access.
    let everybodys = Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new().permissions(everybodys).tempdir().unwrap();
    let program = folder.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(program);
    command.args(again().get_args()).env(PART, "1").current_dir("/").uid(NOBODY).gid(NOBODY);
    assert_ran(&mut command, "as nobody");
}

#[test]
fn tcp_has_the_buffers_that_were_asked_for() {
    in_lab(|| {
        let topology = Topology { tcp_buffer_bytes_max: 99 << 20, ..topology(link(100, Duration::ZERO)) };
        let lab = Lab::build(&topology, None).unwrap();
        for host in [&lab.client, &lab.server] {
            assert_eq!(host.settings.0["net.ipv4.tcp_rmem"], "4096 131072 103809024");
            assert_eq!(host.settings.0["net.ipv4.tcp_wmem"], "4096 16384 103809024");
            assert_eq!(host.settings.0["net.ipv4.tcp_no_metrics_save"], "1");
            assert!(host.settings.0.contains_key("net.ipv4.tcp_slow_start_after_idle"));
        }
    });
}

#[test]
fn the_congestion_control_is_the_one_asked_for_whatever_namespaces_may_choose() {
    in_lab(|| {
        let with = |name: &str| {
            let congestion_control = Some(name.to_owned());
            Lab::build(&Topology { congestion_control, ..topology(link(100, Duration::ZERO)) }, None)
        };
        let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
        for name in known.split_whitespace() {
            let lab = with(name).unwrap();
            for address in &lab.server.addresses {
                let listen = || TcpListener::bind(SocketAddr::new(*address, 0));
                let listener = lab.server.namespace.run(listen).unwrap().unwrap();
                let to = listener.local_addr().unwrap();
                let here = lab.client.namespace.run(|| TcpStream::connect(to)).unwrap().unwrap();
                for end in [here, listener.accept().unwrap().0] {
                    let found = SockRef::from(&end).tcp_congestion().unwrap();
                    assert_eq!(String::from_utf8_lossy(&found).trim_end_matches('\0'), name, "{address}");
                }
            }
        }
        let error = with("no-such-control").unwrap_err().to_string();
        assert!(error.contains("no-such-control"), "{error}");
    });
}
