//! Compiles the BPF programs, if they are wanted (Cargo feature `bpf`): that takes clang, libelf and zlib.

fn main() {
    #[cfg(feature = "bpf")]
    build_bpf();
    println!("cargo::rerun-if-changed=build.rs");
}

#[cfg(feature = "bpf")]
fn build_bpf() {
    use std::path::{Path, PathBuf};

    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo sets it"));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bpf");
    println!("cargo::rerun-if-changed={}", sources.display());
    let source = sources.join("tcp_trace.bpf.c");
    let built = libbpf_cargo::SkeletonBuilder::new().source(&source).obj(out.join("tcp_trace.bpf.o")).build();
    if let Err(error) = built {
        panic!("compiling {}: {error:#}", source.display());
    }
}
