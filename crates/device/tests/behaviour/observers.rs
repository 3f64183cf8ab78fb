//! Whoever observes the device server is told when each command begins, starts and ends.

use crate::world::held_disk::HeldDisk;
use crate::world::{BLOCK, World};
use pdu::Tsih;
use ropewalk_device::{Host, Observer};
use scsi::client;
use session::initiator::Data;
use session::target::{Command, TaskId};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Begins(TaskId),
    Starts(TaskId),
    Ends(TaskId),
}

#[derive(Default)]
struct Notes(RefCell<Vec<Told>>);

impl Notes {
    fn take(&self) -> Vec<Told> {
        self.0.take()
    }
}

impl Observer for Notes {
    fn command_begins(&self, _: Tsih, command: &Command) {
        self.0.borrow_mut().push(Told::Begins(command.task));
    }

    fn command_starts(&self, _: Tsih, task: TaskId) {
        self.0.borrow_mut().push(Told::Starts(task));
    }

    fn command_ends(&self, _: Tsih, task: TaskId) {
        self.0.borrow_mut().push(Told::Ends(task));
    }
}

#[test]
fn a_write_starts_when_its_data_is_there_and_ends_when_the_medium_has_it() {
    let disk = HeldDisk::new(BLOCK, 4096);
    let world = World::with_disk(Arc::new(disk.clone()));
    let mut initiator = world.initiator(1);
    let notes = Rc::new(Notes::default());
    world.environment.observe(Rc::clone(&notes) as Rc<dyn Observer>);
    // The unit attention of a new session ends it before it could start.
    let refused = initiator.submit(world.host.now(), &client::test_unit_ready(), Data::None);
    world.run(&mut [&mut initiator]);
    assert!(initiator.completed.contains_key(&refused));
    assert!(matches!(notes.take()[..], [Told::Begins(_)]));
    disk.hold();
    let out = initiator.buffer(&[7; 512]);
    initiator.submit(world.host.now(), &client::write_10(0, 1, false), Data::Out(out));
    world.run(&mut [&mut initiator]);
    let told = notes.take();
    let [Told::Begins(task), Told::Starts(started)] = told[..] else { panic!("{told:?}") };
    assert_eq!(started, task);
    disk.release();
    world.run(&mut [&mut initiator]);
    assert_eq!(notes.take(), [Told::Ends(task)]);
}
