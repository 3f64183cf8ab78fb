//! What the model costs for each packet: `cargo run --release -p ropewalk-netem --example packet_cost`.

use ropewalk_netem::{
    Bytes, Cap, CoDel, CrossTraffic, Jitter, Link, LinkModel, Loss, Packet, Probability, Rate, Size, Span,
};
use std::error::Error;
use std::time::{Duration, Instant};

/// As large as what a relay would carry: a few words and the name of a buffer.
struct Named {
    flow: u64,
    segments: u32,
    _buffer: [u64; 4],
}

impl Packet for Named {
    fn size(&self) -> Size {
        Size::super_packet(self.segments, 1500, 1500)
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn split_first(&mut self, segments: u32) -> Self {
        self.segments -= segments;
        Self { segments, ..*self }
    }

    fn duplicate(&self) -> Self {
        Self { ..*self }
    }

    fn corrupt(&mut self, _bit: u64) {}
}

const SEGMENTS: u64 = 20_000_000;

/// Nanoseconds of the processor for each packet of a link that is kept full: received whenever there is something.
fn cost(model: &LinkModel, segments: u32) -> Result<f64, Box<dyn Error>> {
    let mut link = Link::new(model, model.delay.0 * 2, 1)?;
    let packets = SEGMENTS / u64::from(segments);
    let spacing_ns = 1518 * 8 * u64::from(segments) * 1_000_000_000 / model.rate.bits();
    let begun = Instant::now();
    for number in 0..packets {
        let now = Duration::from_nanos(number * spacing_ns);
        link.send(now, Named { flow: number % 16, segments, _buffer: [number; 4] });
        while link.next_event().is_some_and(|next| next <= now) {
            link.receive(now);
        }
    }
    Ok(begun.elapsed().as_secs_f64() * 1e9 / packets as f64)
}

fn main() -> Result<(), Box<dyn Error>> {
    let clean = LinkModel::new(Rate::megabits_per_second(2000), Duration::from_millis(20));
    let probability = |fraction| Probability::new(fraction).ok_or("no probability");
    let cap_rate = Rate::megabits_per_second(130);
    let models = [
        ("clean", clean.clone()),
        ("0.1 % loss", LinkModel { loss: Loss::Random(probability(0.001)?), ..clean.clone() }),
        ("CoDel", LinkModel { codel: Some(CoDel::default()), ..clean.clone() }),
        ("jitter", LinkModel { jitter: Jitter::Uniform(Span(Duration::from_millis(1))), ..clean.clone() }),
        ("four parallel paths", LinkModel { parallel: 4, ..clean.clone() }),
        (
            "policer",
            LinkModel { cap: Cap::Police { rate: cap_rate, burst: Bytes(100_000) }, ..clean.clone() },
        ),
        (
            "half cross traffic",
            LinkModel { cross_traffic: CrossTraffic::Constant(Rate::megabits_per_second(1000)), ..clean },
        ),
    ];
    println!("{:<22}{:>14}{:>26}", "2 Gbit/s, 20 ms", "ns per packet", "ns per ten-segment packet");
    for (name, model) in &models {
        println!("{name:<22}{:>14.0}{:>26.0}", cost(model, 1)?, cost(model, 10)?);
    }
    Ok(())
}
