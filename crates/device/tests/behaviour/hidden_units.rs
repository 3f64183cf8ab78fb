//! What an initiator can do to units that it may not use: nothing.

use crate::world::initiator::Initiator;
use crate::world::{BLOCK, HIDDEN_UNIT, TRUSTED, World, unit};
use block::{Backend, Ram};
use ropewalk_device::Host;
use scsi::{AdditionalSense, Status, client, client::SenseData};
use session::initiator::{Data, TaskFunction};
use std::sync::Arc;

/// What TEST UNIT READY tells: `None` if there is nothing.
fn told(world: &World, initiator: &mut Initiator, lun: u16) -> Option<AdditionalSense> {
    let task = initiator.submit_to(lun, world.host.now(), &client::test_unit_ready(), Data::None);
    world.run(&mut [initiator]);
    let completion = &initiator.completed[&task];
    (completion.status != Status::Good.code())
        .then(|| SenseData::parse(&completion.sense).unwrap().additional)
}

#[test]
fn a_reset_of_the_target_spares_them() {
    let disk = || Arc::new(Ram::new(BLOCK, 64).unwrap()) as Arc<dyn Backend>;
    let world = World::with_units(vec![(unit(0), disk()), (unit(HIDDEN_UNIT), disk())]);
    let (mut host, mut trusted) = (world.initiator(1), world.initiator(TRUSTED));
    for lun in [0, HIDDEN_UNIT] {
        while told(&world, &mut trusted, lun).is_some() {}
    }
    let hidden = told(&world, &mut host, HIDDEN_UNIT);
    assert_eq!(hidden, Some(AdditionalSense::LOGICAL_UNIT_NOT_SUPPORTED));
    host.session.as_mut().unwrap().task_management(world.host.now(), TaskFunction::TargetWarmReset);
    world.run(&mut [&mut host, &mut trusted]);
    let reset = told(&world, &mut trusted, 0);
    assert_eq!(reset, Some(AdditionalSense::SCSI_BUS_RESET_OCCURRED));
    assert_eq!(told(&world, &mut trusted, HIDDEN_UNIT), None);
}
