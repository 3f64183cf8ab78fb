//! What a client runs on: tasks and timers in virtual time.

use crate::agenda::Agenda;
use crate::clock::Clock;
use crate::random::Random;
use crate::shared_cell::SharedCell;
use crate::sleep::Sleep;
use ::client::Host;
use futures_util::future::BoxFuture;
use pdu::Instant;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

/// The runtime of all hosts of one world, which polls what is [`spawned`](Self::take_spawned).
#[derive(Clone)]
pub struct Runtime {
    pub clock: Clock,
    pub timers: SharedCell<Agenda<Waker>>,
    /// Tasks that nobody has taken yet. In a lock, because a future is not `Sync`.
    spawned: Arc<Mutex<Vec<BoxFuture<'static, ()>>>>,
    random: SharedCell<Random>,
    /// Decides about single words, which numbers begin with.
    words: SharedCell<Random>,
}

impl Runtime {
    pub fn new(clock: Clock, seed: u64) -> Self {
        let [random, words] = ["entropy", "words"].map(|part| SharedCell::new(Random::new(seed, part)));
        Self { clock, timers: SharedCell::default(), spawned: Arc::default(), random, words }
    }

    /// The tasks that were spawned since this was asked last.
    pub fn take_spawned(&self) -> Vec<BoxFuture<'static, ()>> {
        std::mem::take(&mut self.spawned.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Host for Runtime {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.spawned.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    fn sleep_until(&self, time: Instant) -> BoxFuture<'static, ()> {
        Box::pin(Sleep::new(time, self.clock.clone(), self.timers.clone()))
    }

    fn entropy(&self, to: &mut [u8]) -> io::Result<()> {
        if let Ok(word) = <&mut [u8; size_of::<u32>()]>::try_from(&mut *to) {
            *word = self.words.lock().near_wrap().to_be_bytes();
            return Ok(());
        }
        let mut random = self.random.lock();
        to.iter_mut().for_each(|byte| *byte = random.word().to_le_bytes()[0]);
        Ok(())
    }
}
