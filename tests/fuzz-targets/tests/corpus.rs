//! Every input of the corpus, among them all that ever broke something, and every beginning of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ropewalk_fuzz_targets::FUZZ_TARGETS;
use std::fs;
use std::path::Path;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

/// Beginnings that are tried of each input: a stream may end anywhere.
const BEGINNINGS: usize = 64;

#[test]
fn no_input_of_the_corpus_breaks_anything() {
    for (name, fuzz_target) in FUZZ_TARGETS {
        let mut inputs = 0;
        for entry in fs::read_dir(Path::new(CORPUS).join(name)).unwrap() {
            let input = fs::read(entry.unwrap().path()).unwrap();
            let step = (input.len() / BEGINNINGS).max(1);
            (0..input.len()).step_by(step).for_each(|length| fuzz_target(&input[..length]));
            fuzz_target(&input);
            inputs += 1;
        }
        assert!(inputs > 0, "{name} has no corpus");
    }
}
