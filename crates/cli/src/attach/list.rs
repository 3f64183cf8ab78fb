//! `ropewalk attach --list`.

use super::place::{Place, Record, Way};
use crate::exit::Failed;
use crate::output::{self, outln};
use crate::sizes;
use serde_json::{Value, json};

pub(super) fn run(as_json: bool) -> Result<(), Failed> {
    let attached = Place::all()?;
    if as_json {
        let disks: Vec<_> =
            attached.iter().map(|(place, record)| object(record, place.is_served())).collect();
        output::json(&json!({ "attached": disks }));
    } else if attached.is_empty() {
        outln!("nothing is attached");
    } else {
        let mut table = output::table(&["NAME", "DEVICE", "SIZE", "STATE", "DISK"]);
        for (place, record) in &attached {
            table.add_row([
                record.name.clone(),
                record.way.path().display().to_string(),
                sizes::bytes(record.bytes),
                state(record, place.is_served()),
                record.source.clone(),
            ]);
        }
        output::print(&table);
    }
    Ok(())
}

fn state(record: &Record, served: bool) -> String {
    match (&record.failure, &record.way) {
        (Some(failure), _) => format!("ended: {failure}"),
        (None, _) if !served => "its server is dead".to_owned(),
        (None, Way::Nbd { clients, .. }) => sizes::count(*clients, "client"),
        (None, Way::Loop { .. }) => "works".to_owned(),
    }
}

fn object(record: &Record, served: bool) -> Value {
    let mut object = json!({
        "name": record.name,
        "device": record.way.path(),
        "bytes": record.bytes,
        "disk": record.source,
        "pid": record.pid,
        "served": served,
        "failure": record.failure,
    });
    match &record.way {
        Way::Loop { device, file, .. } => {
            object["loop_device"] = json!(device);
            object["file"] = json!(file);
        }
        Way::Nbd { clients, .. } => object["clients"] = json!(clients),
    }
    object
}
