//! A relay to break connections by hand, and for `scripts/demo`:
//!
//! ```text
//! relay ADDR:PORT [--cut CONNECTION:BYTES]... [--report BYTES]
//! ```
//!
//! It prints its own address; `cut` when every connection named has been cut, each after that many bytes towards the
//! target; and `passed` when that many bytes have gone through, both ways together. It ends when its input does.

use ropewalk_interop::{Cut, Relay, Way};
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const USAGE: &str = "usage: relay ADDR:PORT [--cut CONNECTION:BYTES]... [--report BYTES]";

/// Until the person who started it ends it.
const FOREVER: Duration = Duration::from_secs(1 << 31);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let upstream = arguments.next().ok_or(USAGE)?.parse()?;
    let (mut cuts, mut report_bytes) = (Vec::new(), None);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match option.as_str() {
            "--cut" => cuts.push(cut(&value)?),
            "--report" => report_bytes = Some(value.parse()?),
            _ => return Err(USAGE.into()),
        }
    }
    let relay = Arc::new(Relay::to(upstream, &cuts)?);
    println!("{}", relay.address());
    if !cuts.is_empty() {
        let relay = Arc::clone(&relay);
        thread::spawn(move || relay.wait_for_cuts(cuts.len(), FOREVER).then(|| println!("cut")));
    }
    if let Some(bytes) = report_bytes {
        let relay = Arc::clone(&relay);
        thread::spawn(move || relay.wait_for_bytes(bytes, FOREVER).then(|| println!("passed")));
    }
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

/// `CONNECTION:BYTES`.
fn cut(text: &str) -> Result<Cut, Box<dyn Error>> {
    let (connection, bytes) = text.split_once(':').ok_or(USAGE)?;
    Ok(Cut { connection: connection.parse()?, way: Way::ToTarget, after_bytes: bytes.parse()? })
}
