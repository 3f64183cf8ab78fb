#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ropewalk_fuzz_targets::nbd_client(input));
