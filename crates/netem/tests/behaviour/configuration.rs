//! A model as a file says it.

use ropewalk_netem::*;
use std::time::Duration;

fn read(text: &str) -> Result<PathModel, toml::de::Error> {
    toml::from_str(text)
}

/// Everything that can be said.
const EVERYTHING: &str = r#"
[forward]
rate = "144Mbit"
delay = "20ms"
jitter = { normal = { mean = "1ms", deviation = "500us" } }
mtu = 9000
framing = 38
queue = "720kB"
codel = { target = "5ms", interval = "100ms", ecn = true }
loss = { gilbert_elliott = { enter_bad = "1%", leave_bad = "30%", loss_in_bad = "80%" } }
outages = { every = "60s", length = { alpha = 1.1, min = "50ms", max = "10s" } }
corruption = "0.001%"
duplication = "0.01%"
reordering = { probability = "1%", late = "2ms" }
cap = { shape = { rate = "20Mbit", burst = "30kB", queue = "100kB" } }
parallel = 4
tunnel = true
cross_traffic = { on_off = { mean = "40Mbit", peak = "144Mbit", alpha = 1.5, burst = "100ms" } }

[[forward.schedule]]
at = "10s"
rate = "72Mbit"
loss = { random = "0.1%" }

[[forward.schedule]]
at = "20s"
path = 3
up = false

[backward]
rate = "1Gbit"
delay = "30ms"
jitter = { pareto = { alpha = 1.5, min = "10us", max = "50ms" } }
loss = { bursts = { rate = "2.7%", length = 2.0 } }
cap = { police = { rate = "20Mbit", burst = "30kB" } }
cross_traffic = { constant = "10Mbit" }
"#;

#[test]
fn everything_can_be_said_in_toml_and_comes_back_the_same() {
    let model = read(EVERYTHING).unwrap();
    model.validate().unwrap();
    let again = read(&toml::to_string(&model).unwrap()).unwrap();
    assert_eq!(again, model);
    assert_eq!(model.round_trip(), Duration::from_millis(50));
    assert_eq!(model.forward.schedule[0].loss, Some(Loss::Random("0.1%".parse().unwrap())));
}

#[test]
fn a_rate_and_a_delay_are_enough() {
    let model = read("forward = { rate = \"144Mbit\", delay = \"20ms\" }").unwrap();
    let link = LinkModel::new(Rate::megabits_per_second(144), Duration::from_millis(20));
    assert_eq!(model, PathModel::symmetric(link.clone()));
    assert_eq!(model.backward(), &link);
}

#[test]
fn a_quantity_without_its_unit_is_refused_with_what_is_expected() {
    let refusal = read("forward = { rate = \"144\", delay = \"20ms\" }").unwrap_err().to_string();
    assert!(refusal.contains("write a number and bit, kbit, Mbit or Gbit"), "{refusal}");
}

#[test]
fn a_word_that_means_nothing_is_refused() {
    assert!(read("forward = { rate = \"144Mbit\", delay = \"20ms\", speed = 1 }").is_err());
    assert!(read("forward = { rate = \"144Mbit\", delay = \"20ms\", loss = { often = \"1%\" } }").is_err());
    assert!(read("forward = { rate = \"144Mbit\", delay = \"20ms\", codel = { goal = \"1ms\" } }").is_err());
}

/// What is said about a clean link with this change.
fn refusal(change: impl FnOnce(&mut LinkModel)) -> String {
    let mut model = LinkModel::new(Rate::megabits_per_second(144), Duration::from_millis(20));
    change(&mut model);
    let path = PathModel { forward: model.clone(), backward: None };
    let refusal = path.validate().unwrap_err();
    assert!(model.validate(path.round_trip()).is_err());
    refusal.to_string()
}

#[test]
fn a_model_that_makes_no_sense_is_refused_with_what_is_expected() {
    let queue = refusal(|model| model.queue = "1517B".parse().unwrap());
    assert_eq!(queue, "queue is 1517B, but must be at least one packet of the MTU, with framing");
    assert!(refusal(|model| model.queue = QueueSize::Bdp(f64::NAN)).starts_with("queue is NaNbdp"));
    assert!(refusal(|model| model.mtu = 67).starts_with("mtu is 67"));
    assert!(refusal(|model| model.framing = 1001).starts_with("framing is 1001"));
    assert!(refusal(|model| model.parallel = 0).starts_with("parallel is 0"));
    assert!(refusal(|model| model.parallel = 257).starts_with("parallel is 257"));
    let burst = Cap::Police { rate: Rate::megabits_per_second(1), burst: Bytes(1517) };
    assert!(refusal(|model| model.cap = burst).starts_with("burst is 1517B"));
    let target = CoDel { target: "100ms".parse().unwrap(), ..CoDel::default() };
    assert!(refusal(|model| model.codel = Some(target)).starts_with("codel.target is 100ms"));
}

#[test]
fn cross_traffic_that_makes_no_sense_is_refused() {
    let on_off = |mean, peak, alpha, burst: &str| CrossTraffic::OnOff {
        mean: Rate::megabits_per_second(mean),
        peak: Rate::megabits_per_second(peak),
        alpha,
        burst: burst.parse().unwrap(),
    };
    assert!(refusal(|model| model.cross_traffic = on_off(10, 20, 1.0, "1ms")).starts_with("alpha is 1"));
    assert!(refusal(|model| model.cross_traffic = on_off(30, 20, 1.5, "1ms")).starts_with("mean is 30Mbit"));
    assert!(refusal(|model| model.cross_traffic = on_off(10, 20, 1.5, "1us")).starts_with("burst is 1us"));
}

#[test]
fn a_schedule_that_makes_no_sense_is_refused() {
    let at = |text: &str| Change { at: text.parse().unwrap(), ..Change::default() };
    assert!(refusal(|model| model.schedule = vec![at("2s"), at("1s")]).starts_with("schedule is 1s"));
    let path = Change { path: Some(1), ..at("1s") };
    assert!(refusal(|model| model.schedule = vec![path]).starts_with("path is 1"));
    let bursts = Loss::Bursts { rate: "10%".parse().unwrap(), length: 0.5 };
    let loss = Change { loss: Some(bursts), ..at("1s") };
    assert!(refusal(|model| model.schedule = vec![loss]).starts_with("loss is 0.1 in bursts of 0.5"));
}
