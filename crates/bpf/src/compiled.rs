//! The files that `build.rs` compiled.

/// A compiled file, aligned as ELF requires.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Compiled<Bytes: ?Sized = [u8]>(pub(crate) Bytes);

/// The file of this name.
macro_rules! compiled {
    ($name:literal) => {
        &Compiled(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")))
    };
}

/// TCP's events, one by one.
pub static TCP_TRACE: &Compiled = compiled!("tcp_trace");
/// Where threads wait in the kernel.
pub static OFF_CPU: &Compiled = compiled!("off_cpu");
/// The congestion control of this name.
pub static RW_BIC: &Compiled = compiled!("rw_bic");
/// The congestion control of this name.
pub static RW_FAIR: &Compiled = compiled!("rw_fair");
/// The congestion control of this name.
pub static RW_FAST: &Compiled = compiled!("rw_fast");
/// The congestion control of this name.
pub static RW_HSTCP: &Compiled = compiled!("rw_hstcp");
/// The congestion control of this name.
pub static RW_HTCP: &Compiled = compiled!("rw_htcp");
/// The congestion control of this name.
pub static RW_RENO: &Compiled = compiled!("rw_reno");
/// The congestion control of this name.
pub static RW_SCALABLE: &Compiled = compiled!("rw_scalable");
/// The congestion control of this name.
pub static RW_WESTWOOD: &Compiled = compiled!("rw_westwood");
