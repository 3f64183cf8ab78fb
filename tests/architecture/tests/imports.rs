//! Which crate may import which: the table in ARCHITECTURE.md against `cargo metadata` and the sources.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Crates without input or output, and what would bring it in.
const PURE: &[&str] =
    &["pdu", "scsi", "session", "policy", "framing", "device", "client", "observe", "sim", "netem"];
/// Crates that do input or output only by an optional feature.
const PURE_WITHOUT_FEATURES: &[&str] = &["transfer"];
const IMPURE_LIBRARIES: &[&str] = &["tokio", "libc", "rustix", "socket2", "io-uring", "getrandom", "rand"];
/// What the standard library has of it.
const IMPURE_MODULES: &[&str] = &[
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "Instant::now",
    "SystemTime",
    "net::Tcp",
    "net::Udp",
    "println!",
];
/// The simulator's command, which runs its worlds on threads and prints: not a part of any world.
const COMMAND_OF_THE_SIMULATOR: &[&str] = &["main.rs", "campaign.rs", "report.rs"];

#[test]
fn each_crate_imports_what_the_table_shows_and_no_more() {
    let imports = imports();
    let ours = |name: &String| imports.contains_key(name);
    let found: BTreeMap<String, BTreeSet<String>> = imports
        .iter()
        .map(|(name, dependencies)| {
            (name.clone(), dependencies.iter().filter(|name| ours(name)).cloned().collect())
        })
        .collect();
    assert_eq!(
        found,
        drawn(),
        "left: what Cargo.toml of each crate says; right: the table in ARCHITECTURE.md"
    );
}

/// The table of crates in ARCHITECTURE.md: in each line the crate, its role, and its imports.
fn drawn() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let lines = text.lines().skip_while(|line| !line.starts_with("| crate | role | imports"));
    // The heading, and the line below it.
    let lines = lines.skip(2).take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
            let [name, _, imports] = cells[..] else { panic!("not three cells: {line}") };
            let names = imports.split(',').map(|name| name.trim().trim_matches('`').to_owned());
            (name.trim().trim_matches('`').to_owned(), names.filter(|name| name != "nothing").collect())
        })
        .collect()
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
    files(folder).into_values().collect()
}

/// The files in a folder and below, by their paths.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => drop(
                all.insert(path.display().to_string(), std::fs::read_to_string(&path).unwrap_or_default()),
            ),
        }
    }
    all
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
fn pure_crates_use_no_clock_file_socket_or_thread_of_the_standard_library() {
    for name in PURE {
        for (file, text) in files(&workspace().join("crates").join(name).join("src")) {
            let is_command =
                *name == "sim" && COMMAND_OF_THE_SIMULATOR.iter().any(|command| file.ends_with(command));
            let module = IMPURE_MODULES.iter().find(|module| text.contains(**module));
            assert!(is_command || module.is_none(), "{name} is pure, but {file} uses {module:?}");
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
