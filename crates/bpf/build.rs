//! Compiles the BPF programs, if they are wanted (Cargo feature `programs`): that takes clang, libelf and zlib.

fn main() {
    #[cfg(feature = "programs")]
    build_programs();
    println!("cargo::rerun-if-changed=build.rs");
}

#[cfg(feature = "programs")]
fn build_programs() {
    use std::path::PathBuf;

    // Not as it was compiled: one build script may serve several copies of the sources.
    let folder = |name| PathBuf::from(std::env::var_os(name).expect("Cargo sets it"));
    let (out, sources) = (folder("OUT_DIR"), folder("CARGO_MANIFEST_DIR").join("../../bpf"));
    println!("cargo::rerun-if-changed={}", sources.display());
    let files = std::fs::read_dir(&sources).expect("the folder of the programs can be read");
    for file in files {
        let source = file.expect("the folder of the programs can be read").path();
        if !source.to_string_lossy().ends_with(".bpf.c") {
            continue;
        }
        let object = out.join(source.with_extension("o").file_name().expect("it has a name"));
        let built = libbpf_cargo::SkeletonBuilder::new().source(&source).obj(object).build();
        if let Err(error) = built {
            panic!("compiling {}: {error:#}", source.display());
        }
    }
}
