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
    for name in ["tcp_trace", "off_cpu"] {
        let source = sources.join(name).with_extension("bpf.c");
        let object = out.join(name).with_extension("bpf.o");
        let built = libbpf_cargo::SkeletonBuilder::new().source(&source).obj(object).build();
        if let Err(error) = built {
            panic!("compiling {}: {error:#}", source.display());
        }
    }
}
