//! Which crate may import which: the borders drawn in ARCHITECTURE.md, read from `cargo metadata`.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// For each crate, what it may import of ours.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("pdu", &[]),
    ("scsi", &[]),
    ("block", &[]),
    ("secret", &[]),
    ("netem", &[]),
    ("session", &["pdu"]),
    ("nexus", &["pdu", "session", "scsi"]),
    ("policy", &["pdu"]),
    ("framing", &["pdu", "session", "block"]),
    ("device", &["pdu", "scsi", "session", "nexus", "block", "framing"]),
    ("sim", &["pdu", "scsi", "session", "nexus", "policy", "block", "framing", "device"]),
    ("transport", &["pdu", "session", "block", "framing", "policy"]),
    (
        "target",
        &["pdu", "scsi", "session", "nexus", "policy", "block", "framing", "device", "transport", "secret"],
    ),
    ("initiator", &["pdu", "scsi", "session", "nexus", "policy", "block", "framing", "transport", "secret"]),
    ("transfer", &["initiator", "policy", "block"]),
    ("observe", &["pdu"]),
    ("monitor", &["observe"]),
    (
        "lab",
        &[
            "pdu",
            "scsi",
            "session",
            "nexus",
            "policy",
            "block",
            "framing",
            "device",
            "transport",
            "target",
            "initiator",
            "netem",
            "observe",
            "monitor",
        ],
    ),
    (
        "cli",
        &[
            "lab",
            "netem",
            "pdu",
            "scsi",
            "session",
            "nexus",
            "policy",
            "block",
            "framing",
            "device",
            "transport",
            "secret",
            "target",
            "initiator",
            "transfer",
            "observe",
        ],
    ),
];

/// Crates without input or output, and what would bring it in.
const PURE: &[&str] =
    &["pdu", "scsi", "session", "nexus", "policy", "framing", "device", "observe", "sim", "netem"];
const IMPURE_LIBRARIES: &[&str] = &["tokio", "libc", "rustix", "socket2", "io-uring", "getrandom", "rand"];

#[test]
fn each_crate_imports_only_what_its_place_allows() {
    let imports = imports();
    for (name, dependencies) in &imports {
        let allowed = MAY_IMPORT.iter().find(|(known, _)| known == name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{name} has no rule: add it to MAY_IMPORT"));
        for dependency in dependencies.iter().filter(|dependency| imports.contains_key(*dependency)) {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not import {dependency}");
        }
    }
}

#[test]
fn pure_crates_import_nothing_that_does_input_or_output() {
    let imports = imports();
    for name in PURE {
        for dependency in &imports[*name] {
            assert!(
                !IMPURE_LIBRARIES.contains(&dependency.as_str()),
                "{name} is pure, but imports {dependency}"
            );
        }
    }
}

#[test]
fn pure_crates_forbid_unsafe_code() {
    for name in PURE {
        let root = std::fs::read_to_string(workspace().join(format!("crates/{name}/src/lib.rs"))).unwrap();
        assert!(root.contains("#![forbid(unsafe_code)]"), "{name} does not forbid unsafe code");
    }
}

/// The direct, non-development dependencies of each of our crates, ours by their folder's name.
fn imports() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let crates = metadata["packages"].as_array().unwrap().iter();
    crates.filter_map(|package| Some((folder(package)?, dependencies(package)))).collect()
}

fn dependencies(package: &Value) -> Vec<String> {
    let dependencies = package["dependencies"].as_array().unwrap().iter();
    let used = dependencies.filter(|dependency| dependency["kind"] != "dev");
    used.map(|dependency| {
        let path = dependency["path"].as_str().map(Path::new);
        let name = path.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        name.unwrap_or_else(|| dependency["name"].as_str().unwrap().to_owned())
    })
    .collect()
}

/// The folder below `crates/`, or `None` for a package elsewhere.
fn folder(package: &Value) -> Option<String> {
    let manifest = Path::new(package["manifest_path"].as_str()?);
    let path = manifest.parent()?.strip_prefix(workspace().join("crates")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().map(|path| &*path.leak()).unwrap()
}
