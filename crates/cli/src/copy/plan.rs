//! `--dry-run`: both ends and what would be done.

use super::monitor::format_warning;
use crate::output::{self, outln};
use crate::remote::Usage;
use crate::sizes;
use initiator::Target;
use serde_json::json;
use transfer::{ImageFormat, Job, Plan, Survey, Verify, Zeroing};

pub(super) async fn show(job: &Job, targets: &[Target], json: bool) {
    let survey = job.survey().await;
    let usage = Usage::of(targets);
    if json {
        output::json(&object(job.plan(), survey, &usage));
    } else {
        print(job.plan(), survey, &usage);
    }
}

fn print(plan: &Plan, survey: Option<Survey>, usage: &Usage) {
    let size = |bytes: Option<u64>, otherwise: &str| match bytes {
        Some(bytes) => format!("{} ({bytes} bytes)", sizes::bytes(bytes)),
        None => otherwise.to_owned(),
    };
    let mut rows = vec![
        ("Source", plan.source.to_string()),
        ("", size(plan.bytes, "length known when it ends")),
        ("Destination", plan.destination.to_string()),
        ("", size(plan.capacity_bytes, "grows as needed")),
    ];
    if let Some(survey) = survey {
        rows.push(("Contents", contents(survey)));
    }
    rows.push(("Zeroes", zeroing(plan.zeroing).to_owned()));
    let requests = match plan.requests_max {
        most if most > plan.requests => format!("{} to {most}", plan.requests),
        _ => plan.requests.to_string(),
    };
    rows.push(("Requests", format!("{requests} of {}", sizes::bytes(plan.request_bytes))));
    if usage.connections > 0 {
        let sessions = sizes::count(usage.sessions, "session");
        rows.push(("Connections", format!("{} in {sessions}", usage.connections)));
    }
    rows.push(("Verification", verification(plan.verify, survey.is_none()).to_owned()));
    if plan.untouched_bytes() > 0 {
        let end = format!(
            "the last {} of the destination keep what they hold",
            sizes::bytes(plan.untouched_bytes())
        );
        rows.push(("Note", end));
    }
    if let Some(format) = plan.source_format {
        rows.push(("Warning", format_warning(format)));
    }
    output::print(&output::pairs(rows));
    outln!("\nDry run: nothing was written.");
}

fn contents(survey: Survey) -> String {
    let unknown = match survey.unknown_bytes {
        0 => String::new(),
        bytes => format!(", {} not asked about", sizes::bytes(bytes)),
    };
    format!("{} data, {} holes{unknown}", sizes::bytes(survey.data_bytes), sizes::bytes(survey.zero_bytes))
}

fn zeroing(zeroing: Option<Zeroing>) -> &'static str {
    match zeroing {
        Some(Zeroing::Skip) => "left out, as the destination is zero already",
        Some(Zeroing::Deallocate) => "deallocated, which reads as zeroes here",
        Some(Zeroing::Write) => "written by a command, without being sent",
        None => "written",
    }
}

fn verification(verify: Verify, is_stream: bool) -> &'static str {
    match verify {
        Verify::Full => "every byte",
        Verify::Sample if is_stream => "a sample: first, last, and one of every 64 requests",
        Verify::Sample => "a sample: both ends, and 4 KiB of every 16 MiB",
        Verify::Off => "none",
    }
}

/// The stable name of how much is compared; `None` for nothing.
pub(super) fn verify_name(verify: Verify) -> Option<&'static str> {
    match verify {
        Verify::Full => Some("full"),
        Verify::Sample => Some("sample"),
        Verify::Off => None,
    }
}

fn object(plan: &Plan, survey: Option<Survey>, usage: &Usage) -> serde_json::Value {
    let zeroing = match plan.zeroing {
        Some(Zeroing::Skip) => "skip",
        Some(Zeroing::Deallocate) => "deallocate",
        Some(Zeroing::Write) => "write",
        None => "send",
    };
    json!({
        "message_type": "summary",
        "dry_run": true,
        "source": plan.source.name,
        "source_id": plan.source.designator,
        "destination": plan.destination.name,
        "destination_id": plan.destination.designator,
        "source_format": plan.source_format.map(ImageFormat::name),
        "bytes": plan.bytes,
        "capacity_bytes": plan.capacity_bytes,
        "data_bytes": survey.map(|survey| survey.data_bytes),
        "hole_bytes": survey.map(|survey| survey.zero_bytes),
        "unknown_bytes": survey.map(|survey| survey.unknown_bytes),
        "zeroing": zeroing,
        "requests": plan.requests,
        "requests_max": plan.requests_max,
        "request_bytes": plan.request_bytes,
        "connections": usage.connections,
        "sessions": usage.sessions,
        "verify": verify_name(plan.verify),
    })
}
