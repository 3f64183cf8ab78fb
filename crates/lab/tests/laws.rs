//! The congestion controls in the kernel do what their laws say. Its own program: whoever records them is alone with it.
#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "behaviour/world/mod.rs"]
#[allow(dead_code, reason = "the other programs use the rest")]
mod world;

use congestion::{Control, Offered};
use requirement::{Need, skip};
use ropewalk_lab::netem::{LinkModel, Loss, PathModel, Probability};
use ropewalk_lab::{Congestion, Experiment, Form, Lab, Quantity, Rights, RunOutcome, Topology, execute};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use world::{link, topology};

/// The window of each control beside that of its law.
const EXPERIMENT: &str = r#"
title = "A law"
about = "The window of each control beside that of its law."

[setup]
segments = "single"
congestion_control = "CONTROL"
compare_law = true
"#;

/// A path with losses, at a rate that any machine keeps up with.
const LOSSES: &str = r#"
rtt = "20ms"
link = { rate = "20Mbit", queue = "1bdp", loss = { random = "0.3%" } }
streams = { count = 4, measured = "2s" }
"#;

/// One with a window of hundreds of segments, where the laws for such windows are not Reno's.
const LARGE_WINDOW: &str = r#"
rtt = "80ms"
link = { rate = "40Mbit", queue = "1bdp" }
streams = { count = 1, measured = "2s" }
"#;

/// Loaded controls, which are unloaded at the end, unless somebody had loaded them before.
struct Loaded(Vec<Control>, #[expect(dead_code, reason = "it is held")] MutexGuard<'static, ()>);

impl Loaded {
    /// `None`, with a word about it, where they cannot be loaded.
    fn all() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(reason) = Rights::of_this_process() {
            skip(Need::Netns, &reason.to_string());
            return None;
        }
        let mut loaded = Self(Vec::new(), alone);
        let offered = Offered::here();
        for control in Control::ALL.into_iter().filter(|control| !offered.is_available(control.name())) {
            if let Err(error) = congestion::load(control) {
                skip(Need::Bpf, &error.to_string());
                return None;
            }
            loaded.0.push(control);
        }
        Some(loaded)
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.0.iter().for_each(|control| congestion::unload(*control).unwrap());
    }
}

fn run(path: &str, control: &str) -> RunOutcome {
    let experiment = EXPERIMENT.replace("CONTROL", control) + path;
    let experiment = Experiment::parse(&experiment).unwrap();
    let plan = experiment.plan(Form::Full).unwrap();
    execute(&plan.cells[0].setup, 7).unwrap()
}

/// Nothing is missing, and the window is where the law has it.
fn assert_follows_its_law(path: &str, control: &str) -> RunOutcome {
    let outcome = run(path, control);
    let of_law = |reason: &&String| !reason.contains("relay") && !reason.contains("frame");
    assert_eq!(outcome.reasons.iter().find(of_law), None, "{control}");
    let measured = |quantity| outcome.measured.get(&quantity).copied().unwrap_or(f64::NAN);
    let (median, p99) = (measured(Quantity::LawError), measured(Quantity::LawErrorP99));
    assert!(measured(Quantity::Acknowledgements) > 500.0, "{control}: {:?}", outcome.measured);
    assert!(median <= 1.0 && p99 <= 1.0, "{control}: {median} and {p99} of what is allowed");
    let has_group_errors = outcome.measured.contains_key(&Quantity::LawGroupError);
    assert_eq!(has_group_errors, control.starts_with("rw_fair"), "{control}");
    // The few losses of so short a run have no percentile, and some runs have none.
    for quantity in [Quantity::LawReductionError, Quantity::LawGroupError, Quantity::LawGroupErrorP99] {
        let error = outcome.measured.get(&quantity);
        assert!(
            error.is_none_or(|error| *error <= 1.0),
            "{control}: {quantity:?} is {error:?} of what is allowed"
        );
    }
    outcome
}

#[test]
fn each_control_follows_its_law_over_a_path_with_losses() {
    let Some(_loaded) = Loaded::all() else { return };
    for control in Control::ALL {
        assert_follows_its_law(LOSSES, control.name());
    }
    for control in [Control::Bic, Control::Fast, Control::Hstcp, Control::Htcp, Control::Scalable] {
        assert_follows_its_law(LARGE_WINDOW, control.name());
    }
}

#[test]
fn a_group_follows_its_law_in_each_mode_and_its_members_have_equal_shares() {
    let Some(_loaded) = Loaded::all() else { return };
    for terms in ["single", "conservative", "weight=2", "equal", "cubic", "single,cubic"] {
        let outcome = assert_follows_its_law(LOSSES, &format!("rw_fair:{terms}"));
        let fairness = outcome.measured[&Quantity::Fairness];
        assert!(fairness > 0.9, "{terms}: {fairness}");
    }
}

#[test]
fn what_cannot_be_recorded_is_invalid() {
    let Some(_loaded) = Loaded::all() else { return };
    let outcome = run(LOSSES, "cubic");
    assert!(outcome.reasons.contains(&"cubic has no model here".to_owned()), "{:?}", outcome.reasons);
}

#[test]
fn a_group_follows_the_owner_of_a_member_and_the_administrator_before_the_owner() {
    let Some(_loaded) = Loaded::all() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut sender = connect();
    let mut receiver = listener.accept().unwrap().0;
    let owner = sender.try_clone().unwrap();
    let wants = |terms: &str| congestion::name_group(owner.as_fd(), 8, terms.parse().unwrap()).unwrap();
    let orders = |terms: &str| assert_eq!(congestion::order(8, terms.parse().unwrap()).unwrap(), 1);
    let group = || congestion::groups().unwrap().into_iter().find(|group| group.key.group == 8);
    let now = || group().unwrap().terms.to_string();
    let mut send_until_it_is = |wanted: &str| {
        let before = now();
        let mut sent = 0;
        while now() == before && sent < BYTES_MAX {
            let mut block = [0; 4096];
            sender.write_all(&block).unwrap();
            receiver.read_exact(&mut block).unwrap();
            sent += block.len();
        }
        assert_eq!(now(), wanted, "after {sent} bytes");
    };
    let join = |socket: &TcpStream| transport::choose(&"rw_fair:equal".parse().unwrap(), 8, socket).unwrap();
    join(&owner);
    assert_eq!(now(), "equal");
    wants("single");
    send_until_it_is("single");
    orders("weight=2,cubic");
    send_until_it_is("weight=2,cubic");
    wants("conservative");
    orders("fair");
    send_until_it_is("fair");
    let second = connect();
    join(&second);
    assert_eq!(now(), "fair", "who joins obeys, too");
    drop((second, owner, sender, receiver));
    while group().is_some() {
        std::thread::yield_now();
    }
    let next = connect();
    join(&next);
    assert_eq!(now(), "equal", "the next group of this number has no orders");
}

/// Bytes that connections may send until something is to have happened.
const BYTES_MAX: usize = 40 << 20;

#[test]
fn the_same_number_in_another_network_namespace_is_another_group() {
    let Some(_loaded) = Loaded::all() else { return };
    let lab = Lab::build(&topology(link(10, Duration::from_millis(1))), None).unwrap();
    let address = lab.server.addresses[0];
    let listener = lab.server.namespace.run(|| TcpListener::bind((address, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let here = lab.client.namespace.run(|| TcpStream::connect(address)).unwrap().unwrap();
    let there = listener.accept().unwrap().0;
    for socket in [&here, &there] {
        transport::choose(&Congestion::named("rw_fair"), 6, socket).unwrap();
    }
    let groups = congestion::groups().unwrap();
    let members: Vec<_> =
        groups.iter().filter(|group| group.key.group == 6).map(|group| group.members).collect();
    assert_eq!(members, [1, 1]);
}

/// Of four members of a group, so many over the second path, those leave it.
fn assert_that_members_on_the_second_path_leave(paths: [LinkModel; 2], on_second: u32) {
    let [first, second] = paths.map(PathModel::symmetric);
    let topology = Topology { second: Some(second), addresses: 2, ..Topology::new(first) };
    let lab = Lab::build(&topology, None).unwrap();
    let listeners: Vec<_> = (lab.server.addresses.iter().take(2))
        .map(|address| lab.server.namespace.run(|| TcpListener::bind((*address, 0))).unwrap().unwrap())
        .collect();
    let connections = listeners.iter().zip([4 - on_second, on_second]);
    let (mut senders, receivers): (Vec<_>, Vec<_>) = connections
        .flat_map(|(listener, count)| (0..count).map(move |_| listener))
        .map(|listener| {
            let address = listener.local_addr().unwrap();
            let sender = lab.client.namespace.run(|| TcpStream::connect(address)).unwrap().unwrap();
            (sender, listener.accept().unwrap().0)
        })
        .unzip();
    for sender in &mut senders {
        transport::choose(&Congestion::named("rw_fair"), 7, sender).unwrap();
        sender.set_nonblocking(true).unwrap();
    }
    let group = || congestion::groups().unwrap().into_iter().find(|group| group.key.group == 7).unwrap();
    assert_eq!(group().members, 4);
    // It takes the senders along, whose end is the receivers' end, also if it fails.
    std::thread::scope(move |scope| {
        for mut receiver in receivers {
            scope.spawn(move || std::io::copy(&mut receiver, &mut std::io::sink()));
        }
        let mut sent = 0;
        // Losses tell after sixteen, which take an eighth of that or a little more.
        while group().split_members < on_second && sent < BYTES_MAX / 2 {
            for sender in &mut senders {
                sent += sender.write(&[0; 4096]).unwrap_or(0);
            }
        }
        let group = group();
        let (members, split) = (group.members, group.split_members);
        assert_eq!((members, split), (4 - on_second, on_second), "after {sent} bytes: {group:?}");
        drop(senders);
    });
}

#[test]
fn members_with_another_round_trip_leave_the_group() {
    let Some(_loaded) = Loaded::all() else { return };
    let paths = [10, 40].map(|delay| link(10, Duration::from_millis(delay)));
    assert_that_members_on_the_second_path_leave(paths, 2);
}

#[test]
fn a_member_with_more_losses_than_the_others_leaves_the_group() {
    let Some(_loaded) = Loaded::all() else { return };
    // So fast that no queue grows, which would make the round trips differ, too.
    let clean = link(100, Duration::from_millis(10));
    let lossy = LinkModel { loss: Loss::Random(Probability::new(0.05).unwrap()), ..clean.clone() };
    assert_that_members_on_the_second_path_leave([clean, lossy], 1);
}
