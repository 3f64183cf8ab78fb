//! A run from beginning to end.

use crate::client::Client;
use crate::descriptors;
use crate::outcome::{Latency, Memory, Outcome, Stop};
use crate::path::Path;
use crate::plan::Plan;
use crate::subject::{Order, Subject};
use crate::tally::Tally;
use crate::usage::{Sampler, Usage};
use crate::worker::Worker;
use anyhow::Result;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet, spawn_blocking};

/// How long answers may take after the load: a command may wait for a connection that is only just found dead.
const ANSWERS_LIMIT: Duration = Duration::from_secs(120);

/// How long it may take until every session has all its connections again.
const RECOVERY_LIMIT: Duration = Duration::from_secs(120);

/// How often is looked whether they have.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What the first memory is measured after, once all have logged in.
const IDLE_TIME: Duration = Duration::from_secs(2);

/// Runs a plan, and tells what it is doing.
///
/// # Errors
/// It cannot be run: too few descriptors, no target, a client that cannot log in. What goes wrong afterwards is part of
/// the outcome.
pub fn run(plan: &Plan, tell: impl Fn(&str)) -> Result<Outcome> {
    descriptors::raise(plan.descriptors())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, course(plan, &tell))
}

async fn course(plan: &Plan, tell: &dyn Fn(&str)) -> Result<Outcome> {
    let mut subject = Subject::start(plan)?;
    let path = Path::to(subject.address(), plan.seed)?;
    let this = std::process::id();
    let (mut target, mut clients) = (Memory::default(), Memory::default());
    (target.empty, clients.empty) = (subject.usage()?, Usage::of(this)?);

    tell(&format!("{} sessions log in", plan.sessions));
    let begun = Instant::now();
    let sessions = Client::connect_all(plan, path.address()).await?;
    let login_seconds = begun.elapsed().as_secs_f64();
    tokio::time::sleep(IDLE_TIME).await;
    (target.idle, clients.idle) = (subject.usage()?, Usage::of(this)?);

    let tally = Rc::new(Tally::new()?);
    let workers: Vec<Worker> = sessions.iter().flat_map(|client| client.workers(plan, &tally)).collect();
    let (workers, _) = all(workers, async |worker| worker.prepare().await).await;

    tell(&format!("{} seconds of load", plan.duration.as_secs()));
    let sampler = Sampler::start(subject.process());
    let (cpu_before, wait_before) = (subject.cpu_seconds()?, subject.processor_wait()?);
    let (begin, broken_before) = (Instant::now(), path.broken());
    path.break_per_second(plan.breaks_per_second);
    let mut loaded = JoinSet::new();
    for mut worker in workers {
        loaded.spawn_local(async move {
            worker.run().await;
            worker
        });
    }
    let mut stops = Vec::new();
    for order in orders(plan) {
        tokio::time::sleep(plan.duration / (plan.restarts + 1)).await;
        tell("the target is stopped and started again");
        let stop;
        (subject, stop) = restart(subject, order).await?;
        stops.push(stop);
    }
    tokio::time::sleep(plan.duration.saturating_sub(begin.elapsed())).await;
    let end = Instant::now();
    path.break_per_second(0.0);
    tally.over.set(true);
    let samples = sampler.finish();
    // A process that was started under load did nothing before.
    let (cpu_before, wait_before) =
        if stops.is_empty() { (cpu_before, wait_before) } else { (0.0, Duration::ZERO) };
    let target_cpu_seconds = subject.cpu_seconds()? - cpu_before;
    let target_cpu_wait_seconds = subject.processor_wait()?.saturating_sub(wait_before).as_secs_f64();
    target.under_load(&samples, |sample| sample.target, begin, end);
    clients.under_load(&samples, |sample| sample.clients, begin, end);

    tell("every session recovers, and every block is read once more");
    let mut idle = Vec::new();
    let ended = tokio::time::timeout(ANSWERS_LIMIT, async {
        while let Some(worker) = loaded.join_next().await {
            idle.push(worker?);
        }
        anyhow::Ok(())
    });
    // If time is up, those that are left are counted.
    if let Ok(ended) = ended.await {
        ended?;
    }
    let stuck = loaded.len();
    let broken_sessions = recovery(&sessions).await;
    let (_, unread) = all(idle, async |worker| worker.check().await).await;
    let broken = path.broken() - broken_before;

    tell("the target is stopped");
    let target_log = subject.log();
    let (_subject, stop) = spawn_blocking(move || {
        let stop = subject.stop(Order::Terminate);
        stop.map(|stop| (subject, stop))
    })
    .await??;
    stops.push(stop);
    let reports: Vec<_> = sessions.iter().map(Client::report).collect();
    let latency_us = tally.latency_us.borrow();
    let milliseconds = |us: u64| us as f64 / 1000.0;
    Ok(Outcome {
        sessions: plan.sessions,
        connections: plan.all_connections(),
        seconds: (end - begin).as_secs_f64(),
        login_seconds,
        commands: latency_us.len(),
        latency: Latency {
            p50_ms: milliseconds(latency_us.value_at_quantile(0.5)),
            p99_ms: milliseconds(latency_us.value_at_quantile(0.99)),
            max_ms: milliseconds(latency_us.max()),
        },
        broken,
        recovered: reports.iter().map(|report| report.recovered_connections).sum(),
        reinstatements: reports.iter().map(|report| report.reinstatements).sum(),
        retries: reports.iter().map(|report| report.retries).sum(),
        errors: tally.errors.get(),
        mismatches: tally.mismatches.get(),
        first_errors: tally.first_errors.borrow().clone(),
        restarts_told: tally.restarts_told.get(),
        stuck: stuck + unread,
        broken_sessions,
        target,
        clients,
        target_cpu_seconds,
        target_cpu_wait_seconds,
        stops,
        target_log,
    })
}

/// How the target is stopped before each restart.
fn orders(plan: &Plan) -> impl Iterator<Item = Order> + use<> {
    [Order::Terminate, Order::InterruptTwice].into_iter().cycle().take(plan.restarts as usize)
}

async fn restart(mut subject: Subject, order: Order) -> Result<(Subject, Stop)> {
    spawn_blocking(move || {
        let stop = subject.restart(order)?;
        Ok((subject, stop))
    })
    .await?
}

/// Lets all workers do something at once; returns them, and how many had no answer in time.
async fn all(workers: Vec<Worker>, act: impl AsyncFn(&mut Worker) + Copy + 'static) -> (Vec<Worker>, usize) {
    let mut acting = JoinSet::new();
    for mut worker in workers {
        acting.spawn_local(async move {
            act(&mut worker).await;
            worker
        });
    }
    let mut done = Vec::new();
    let _ = tokio::time::timeout(ANSWERS_LIMIT, async {
        while let Some(worker) = acting.join_next().await {
            done.extend(worker);
        }
    })
    .await;
    (done, acting.len())
}

/// Waits until every session has all its connections; returns how many do not in time.
async fn recovery(sessions: &[Client]) -> usize {
    let deadline = Instant::now() + RECOVERY_LIMIT;
    loop {
        let lacking = sessions.iter().filter(|client| !client.is_whole()).count();
        if lacking == 0 || Instant::now() > deadline {
            return lacking;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
