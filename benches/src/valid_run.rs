//! Measurements in a lab, repeated until its relay says that it had no part in them.

use lab::Verdict;

/// Where the verdict is to stand.
pub const VERDICT: &str = "@verdict";

/// Measures until the relay says that it was valid, and says how often it was not; at most so many times more.
pub fn repeat(
    repetitions: u32,
    mut measure: impl FnMut() -> anyhow::Result<(String, Verdict)>,
) -> anyhow::Result<String> {
    let mut invalid = 0;
    loop {
        let (text, verdict) = measure()?;
        match verdict {
            Verdict::Valid if invalid == 0 => return Ok(text.replace(VERDICT, "VALID")),
            Verdict::Valid => {
                return Ok(text.replace(VERDICT, &format!("VALID, after {invalid} that were not")));
            }
            Verdict::Invalid(_) if invalid == repetitions => {
                return Ok(text.replace(VERDICT, &format!("{verdict} (as {repetitions} before)")));
            }
            Verdict::Invalid(_) => invalid += 1,
        }
    }
}
