//! Which crate may import which: the borders drawn in ARCHITECTURE.md, read from `cargo metadata`.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The imports of each crate among ours: all of them, and no others.
const IMPORTS: &[(&str, &[&str])] = &[
    ("pdu", &[]),
    ("scsi", &[]),
    ("block", &[]),
    ("secret", &[]),
    ("netem", &[]),
    ("session", &["pdu"]),
    ("policy", &["pdu"]),
    ("framing", &["block", "pdu", "session"]),
    ("device", &["block", "framing", "pdu", "scsi", "session"]),
    ("client", &["block", "framing", "pdu", "policy", "scsi", "session"]),
    ("sim", &["block", "client", "device", "framing", "pdu", "policy", "scsi", "session", "transfer"]),
    ("transport", &["framing", "pdu", "session"]),
    ("target", &["block", "device", "framing", "pdu", "scsi", "secret", "session", "transport"]),
    ("initiator", &["client", "framing", "pdu", "policy", "secret", "session", "transport"]),
    ("transfer", &["block"]),
    ("observe", &["pdu"]),
    ("monitor", &["observe"]),
    (
        "lab",
        &[
            "block",
            "device",
            "framing",
            "initiator",
            "monitor",
            "netem",
            "observe",
            "pdu",
            "policy",
            "session",
            "target",
            "transport",
        ],
    ),
    ("cli", &["block", "initiator", "lab", "observe", "pdu", "secret", "target", "transfer", "transport"]),
];

/// Crates without input or output, and what would bring it in.
const PURE: &[&str] =
    &["pdu", "scsi", "session", "policy", "framing", "device", "client", "observe", "sim", "netem"];
/// Crates that do input or output only by an optional feature.
const PURE_WITHOUT_FEATURES: &[&str] = &["transfer"];
const IMPURE_LIBRARIES: &[&str] = &["tokio", "libc", "rustix", "socket2", "io-uring", "getrandom", "rand"];

#[test]
fn each_crate_imports_what_the_map_shows_and_no_more() {
    let imports = imports();
    for (name, _) in IMPORTS {
        assert!(imports.contains_key(*name), "there is no crate {name}");
    }
    for (name, dependencies) in &imports {
        let drawn = IMPORTS.iter().find(|(known, _)| known == name);
        let (_, drawn) = drawn.unwrap_or_else(|| panic!("{name} is not on the map: add it to IMPORTS"));
        let ours = |dependency: &&String| imports.contains_key(*dependency);
        let mut found: Vec<&str> = dependencies.iter().filter(ours).map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, *drawn, "the imports of {name} are not those on the map");
    }
}

#[test]
fn every_import_is_used() {
    for (name, dependencies) in &imports() {
        let package = workspace().join("crates").join(name);
        let build_script = std::fs::read_to_string(package.join("build.rs")).unwrap_or_default();
        let sources = sources(&package.join("src")) + &build_script;
        for dependency in dependencies.iter().map(|dependency| dependency.replace('-', "_")) {
            // The one package whose library has another name.
            let library = if dependency == "md_5" { "md5" } else { &dependency };
            assert!(sources.contains(library), "{name} imports {dependency}, and uses it nowhere");
        }
    }
}

/// All the Rust in a folder.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: std::path::PathBuf| match path.is_dir() {
        true => sources(&path),
        false => std::fs::read_to_string(path).unwrap_or_default(),
    };
    entries.map(text).collect()
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
fn pure_cores_import_what_does_input_or_output_only_by_a_feature() {
    for package in packages() {
        if folder(&package).is_none_or(|name| !PURE_WITHOUT_FEATURES.contains(&&*name)) {
            continue;
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["name"].as_str().unwrap();
            let is_optional = dependency["optional"] == true || dependency["kind"] == "dev";
            let brings_none = is_optional || !IMPURE_LIBRARIES.contains(&name);
            assert!(brings_none, "{} imports {name}, whatever its features", package["name"]);
            let is_ours = dependency["path"].is_string();
            let features = dependency["features"].as_array().unwrap();
            assert!(
                !is_ours || is_optional || features.is_empty(),
                "{} imports {name} with {features:?}, whatever its own features",
                package["name"]
            );
        }
    }
}

#[test]
fn pure_crates_forbid_unsafe_code() {
    for name in PURE.iter().chain(PURE_WITHOUT_FEATURES) {
        let root = std::fs::read_to_string(workspace().join(format!("crates/{name}/src/lib.rs"))).unwrap();
        assert!(root.contains("#![forbid(unsafe_code)]"), "{name} does not forbid unsafe code");
    }
}

/// The direct, non-development dependencies of each of our crates, ours by their folder's name.
fn imports() -> BTreeMap<String, Vec<String>> {
    packages().iter().filter_map(|package| Some((folder(package)?, dependencies(package)))).collect()
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
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
