//! The SCSI disk: its commands, its data about itself, its settings.

mod block_commands;
mod extended_copy;
mod logs;
mod mode_select;
mod operation_codes;
mod parameter_data;
mod ports;
mod provisioning;
mod removable_medium;
mod reservations;
mod thresholds;
mod world;
