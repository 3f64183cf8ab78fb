//! What the sessions of a logical unit share: its task set, unit attentions, reservations and settings.

mod reservations_changes;
mod reservations_conflicts;
mod reservations_persisted;
mod reservations_properties;
mod shared_settings;
mod task_set;
mod unit_attentions;
mod world;
