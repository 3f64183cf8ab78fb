//! How many requests are under way at the same time. Pure.

use std::time::Duration;

/// As many as hold twice the bandwidth-delay product, and no fewer than a copy begins with.
///
/// The shortest time of a request is the delay, with the time that its own data takes; what ends per second is the
/// bandwidth. Requests that take longer than twice the shortest time wait for each other, and more would only wait longer.
#[derive(Clone, Debug)]
pub(crate) struct Depth {
    now: usize,
    most: usize,
    shortest: Option<Duration>,
    /// When the present round began.
    began: Option<Duration>,
    /// The requests that have ended in it.
    ended: usize,
}

impl Depth {
    pub(crate) fn new(first: usize, most: usize) -> Self {
        Self { now: first, most: most.max(first), shortest: None, began: None, ended: 0 }
    }

    pub(crate) fn now(&self) -> usize {
        self.now
    }

    /// A request that began at this time has ended now. As many as may be under way make a round.
    pub(crate) fn ended(&mut self, began: Duration, now: Duration) {
        let took = now.saturating_sub(began);
        let shortest = self.shortest.map_or(took, |shortest| shortest.min(took));
        self.shortest = Some(shortest);
        let round_began = *self.began.get_or_insert(now);
        self.ended += 1;
        if self.ended <= self.now {
            return;
        }
        let per_second = self.now as f64 / now.saturating_sub(round_began).as_secs_f64();
        let wanted = 2.0 * per_second * shortest.as_secs_f64();
        if wanted.is_finite() {
            self.now = self.now.max(whole(wanted)).min(self.most);
        }
        (self.began, self.ended) = (Some(now), 1);
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive number of requests")]
fn whole(requests: f64) -> usize {
    requests as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const DELAY: Duration = Duration::from_millis(100);

    /// The depth after a while over a path that delays each request, and lets one pass in this time.
    fn depth_over(pause: Duration, first: usize, most: usize) -> usize {
        let mut depth = Depth::new(first, most);
        let (mut now, mut free) = (Duration::ZERO, Duration::ZERO);
        let mut under_way = VecDeque::new();
        for _ in 0..20_000 {
            while under_way.len() < depth.now() {
                free = free.max(now) + pause;
                under_way.push_back((now, free + DELAY));
            }
            let (began, ends) = under_way.pop_front().unwrap();
            now = ends;
            depth.ended(began, now);
        }
        depth.now()
    }

    #[test]
    fn a_path_that_holds_more_gets_twice_what_it_holds() {
        // It holds 200 requests.
        let depth = depth_over(Duration::from_micros(500), 64, 1000);
        assert!((380..=420).contains(&depth), "{depth}");
    }

    #[test]
    fn a_path_that_holds_less_gets_no_more_than_at_first() {
        assert_eq!(depth_over(Duration::from_millis(10), 64, 1000), 64);
    }

    #[test]
    fn there_are_no_more_than_the_most() {
        assert_eq!(depth_over(Duration::from_micros(500), 64, 256), 256);
    }

    #[test]
    fn a_depth_that_is_set_stays() {
        assert_eq!(depth_over(Duration::from_micros(500), 8, 8), 8);
    }

    #[test]
    fn requests_that_take_no_time_want_no_more() {
        let mut depth = Depth::new(4, 8);
        (0..100).for_each(|_| depth.ended(Duration::ZERO, Duration::ZERO));
        assert_eq!(depth.now(), 4);
    }
}
