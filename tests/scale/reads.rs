//! Every read, what it may cost, and what it must find.

use std::collections::BTreeSet;
use std::time::Duration;

use dq::inspect::{BulkAction, Inspector, JobFilter, JobsPage, MAX_LOOKED_AT, NotRunReason, Scale};
use dq::job::State;
use dq::provider::Provider;

use crate::fill::{DUE, ENDED, HELD, NODES, RUNNING, SCHEDULES, SPAN, TOPIC, WAITING};
use crate::meter::{MAX_COMMANDS, Meter};

/// What the records of a page have at most, and what a server says beside them.
const PAGE: u64 = (1 << 20) + (1 << 17);

/// A filter reads ten pages.
const FILTERED: u64 = 10 * PAGE;

const SMALL: u64 = 32 << 10;

pub(crate) async fn check(provider: &Provider, meter: &Meter) {
    let look = provider.inspect();
    learn(provider, &look).await;
    topics_and_nodes(&look, meter).await;
    jobs(&look, meter).await;
    filters(&look, meter).await;
    running(&look, meter).await;
    futures(&look, meter).await;
    histories_and_statistics(&look, meter).await;
    why(&look, meter).await;
    schedules(provider, meter).await;
    bulk(&look, meter).await;
}

/// The server learns the scripts.
async fn learn(provider: &Provider, look: &Inspector) {
    look.topics(None).await.unwrap();
    look.nodes(TOPIC, None).await.unwrap();
    for state in [State::Delayed, State::Running] {
        look.jobs(TOPIC, state, &JobFilter::default(), None).await.unwrap();
    }
    look.timeline(TOPIC).await.unwrap();
    look.job(TOPIC, "nobody").await.unwrap();
    look.history(TOPIC, "nobody").await.unwrap();
    look.run_stats(TOPIC).await.unwrap();
    let topic = provider.topic(TOPIC).unwrap();
    topic.schedules().next_page().await.unwrap();
    topic.delete("nobody").await.unwrap();
}

async fn topics_and_nodes(look: &Inspector, meter: &Meter) {
    let page = meter.within("topics", (3, SMALL), look.topics(None)).await.unwrap();
    assert_eq!((page.topics.len(), page.next), (1, None));
    let topic = meter.within("topic", (2, SMALL), look.topic(TOPIC)).await.unwrap();
    assert_eq!((topic.delayed, topic.ready, topic.running), (WAITING + SCHEDULES, DUE, RUNNING));
    assert_eq!((topic.unacked, topic.dead, topic.done), (ENDED, ENDED, ENDED));
    assert_eq!((topic.nodes_holding, topic.nodes.len()), (NODES, 100));
    let (mut seen, mut after) = (BTreeSet::new(), None::<String>);
    loop {
        let page = meter.within("nodes", (3, SMALL), look.nodes(TOPIC, after.as_deref())).await.unwrap();
        assert!(page.nodes.len() <= 100 && page.nodes_holding == NODES);
        assert!(page.nodes.iter().all(|node| node.jobs == HELD && node.until > page.store_time), "{page:?}");
        for node in &page.nodes {
            assert!(seen.insert(node.node.to_string()), "{} comes twice", node.node);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, (0..NODES).map(|n| format!("web-{n:03}")).collect());
}

async fn jobs(look: &Inspector, meter: &Meter) {
    let waits = meter.within("job that waits", (1, SMALL), look.job(TOPIC, "j0900000")).await.unwrap();
    assert_eq!(waits.unwrap().state, State::Delayed);
    let unknown = meter.within("job that there is not", (1, SMALL), look.job(TOPIC, "nobody")).await.unwrap();
    assert_eq!(unknown, None);
    let all = JobFilter::default();
    for state in State::ALL {
        let mut after = None;
        for _ in 0..3 {
            let name = format!("jobs, {state}");
            let page = meter.within(&name, (4, PAGE), look.jobs(TOPIC, state, &all, after)).await.unwrap();
            assert_eq!((page.jobs.len(), page.looked_at), (100, 100), "{name}");
            after = page.next;
            assert!(after.is_some(), "{name}");
        }
    }
}

/// A page without a job that says how far it looked.
fn looked_far(page: &JobsPage, state: State) {
    assert!(page.jobs.is_empty() && page.looked_at <= MAX_LOOKED_AT, "{state}: {} looked at", page.looked_at);
    if state == State::Running {
        // Redis reads the rows of 16 nodes with two commands.
        assert!(page.looked_at >= 128 * HELD, "{} looked at", page.looked_at);
        assert_eq!(page.next.is_none(), page.looked_at == RUNNING);
    } else {
        assert_eq!(page.looked_at, MAX_LOOKED_AT, "{state}");
        assert!(page.looked_until.is_some() && page.next.is_some(), "{state}");
    }
}

async fn filters(look: &Inspector, meter: &Meter) {
    let none: [(&str, JobFilter); 4] = [
        ("an id", JobFilter { id_prefix: Some("nobody".into()), ..JobFilter::default() }),
        ("a header", JobFilter { header: Some(("tenant".into(), "two".into())), ..JobFilter::default() }),
        ("an error", JobFilter { error: Some("the post".into()), ..JobFilter::default() }),
        ("attempts", JobFilter { attempts: Some(9), ..JobFilter::default() }),
    ];
    for state in State::ALL {
        for (what, filter) in &none {
            let name = format!("jobs, {state}, by {what}");
            let read = look.jobs(TOPIC, state, filter, None);
            looked_far(&meter.within(&name, (MAX_COMMANDS, FILTERED), read).await.unwrap(), state);
        }
    }
    let one = JobFilter { error: Some("the bank says 19999".into()), ..JobFilter::default() };
    let first = look.jobs(TOPIC, State::Dead, &one, None).await.unwrap();
    let second = look.jobs(TOPIC, State::Dead, &one, first.next).await.unwrap();
    assert_eq!((first.jobs.len(), second.jobs.len(), second.next), (0, 1, None), "the second page finds it");
    let now = look.topic(TOPIC).await.unwrap().store_time;
    let (from, until) = (now.after(SPAN / 2), now.after(SPAN / 2 + Duration::from_secs(120)));
    let filter = JobFilter { from: Some(from), until: Some(until), ..JobFilter::default() };
    let read = look.jobs(TOPIC, State::Delayed, &filter, None);
    let page = meter.within("jobs that wait, by time", (1, PAGE), read).await.unwrap();
    assert!((34..=36).contains(&page.jobs.len()) && page.next.is_none(), "{} jobs", page.jobs.len());
}

async fn running(look: &Inspector, meter: &Meter) {
    for (what, filter) in
        [("all", JobFilter::default()), ("by an id", JobFilter { id_prefix: Some("j".into()), ..JobFilter::default() })]
    {
        let (mut seen, mut count, mut after) = (BTreeSet::new(), 0, None);
        loop {
            let name = format!("running jobs, {what}");
            let read = look.jobs(TOPIC, State::Running, &filter, after);
            let page = meter.within(&name, (MAX_COMMANDS, FILTERED), read).await.unwrap();
            assert!(page.jobs.len() <= 100 && page.jobs.iter().all(|job| job.node.is_some()));
            count += page.jobs.len();
            assert!(count <= RUNNING, "no job comes twice while nothing moves");
            seen.extend(page.jobs.into_iter().map(|job| job.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen.len(), RUNNING, "{what}");
    }
}

async fn futures(look: &Inspector, meter: &Meter) {
    let timeline = meter.within("timeline", (4, SMALL), look.timeline(TOPIC)).await.unwrap();
    let days: usize = timeline.days.iter().map(|day| day.jobs).sum();
    assert_eq!(timeline.ready, DUE);
    assert!(days.abs_diff(WAITING - DUE) < 5_000, "{days} jobs in the days ahead");
    for scale in [Scale::Minutes, Scale::Hours, Scale::Days] {
        meter.within("timeline_for", (1, SMALL), look.timeline_for(TOPIC, scale, timeline.now)).await.unwrap();
    }
}

async fn histories_and_statistics(look: &Inspector, meter: &Meter) {
    let now = look.topic(TOPIC).await.unwrap().store_time;
    for scale in [Scale::Minutes, Scale::Hours] {
        meter.within("past of one scale", (1, SMALL), look.past_of(TOPIC, scale, now)).await.unwrap();
    }
    meter.within("past", (2, SMALL), look.run_stats(TOPIC)).await.unwrap();
    meter.within("history", (1, SMALL), look.history(TOPIC, "j1000000")).await.unwrap();
}

async fn why(look: &Inspector, meter: &Meter) {
    let of = async |what: &str, most: u64, id: &str| {
        let why = meter.within(&format!("why, {what}"), (most, SMALL), look.why(TOPIC, id)).await.unwrap();
        why.reasons
    };
    let last = format!("j{:07}", RUNNING + DUE - 1);
    let due = of("behind others", 5, &last).await;
    assert!(matches!(due[0], NotRunReason::Behind { earlier, is_exact: true } if earlier > DUE / 2), "{due:?}");
    let later = of("not due", 5, "j1000000").await;
    assert!(matches!(later[0], NotRunReason::NotDueYet { .. }), "{later:?}");
    let runs = of("running", 14, "j0004999").await;
    assert!(matches!(&runs[0], NotRunReason::Running { node: Some(_), lease: Some(_) }), "{runs:?}");
    for (id, what) in [("dead00000", "DEAD"), ("parked00000", "UNACKED"), ("done00000", "DONE")] {
        assert_eq!(of(what, 4, id).await.len(), 1, "{what}");
    }
    // Its outboxes may have a follow-up that adds the job.
    assert_eq!(of("unknown", 19, "nobody").await.len(), 1);
}

async fn schedules(provider: &Provider, meter: &Meter) {
    let mut pages = provider.topic(TOPIC).unwrap().schedules();
    let mut seen = 0;
    while let Some(page) = meter.within("schedules", (4, PAGE), pages.next_page()).await.unwrap() {
        assert!(page.len() <= 100);
        seen += page.len();
        if seen == SCHEDULES {
            break;
        }
    }
    assert_eq!(seen, SCHEDULES);
}

async fn bulk(look: &Inspector, meter: &Meter) {
    let (none, all) = (JobFilter { attempts: Some(9), ..JobFilter::default() }, JobFilter::default());
    for (state, filter, action, changed) in [
        (State::Delayed, &none, BulkAction::Delete, 0),
        (State::Delayed, &all, BulkAction::Delete, 100),
        (State::Dead, &all, BulkAction::Requeue, 100),
        (State::Running, &all, BulkAction::Delete, 100),
        (State::Running, &none, BulkAction::Delete, 0),
    ] {
        let mut step = look.bulk(TOPIC, state, filter.clone(), action).unwrap();
        let name = format!("a step of {action:?}, {state}");
        let progress = meter.within(&name, (MAX_COMMANDS, FILTERED), step.step()).await.unwrap().unwrap();
        assert_eq!(progress.changed, changed, "{name}");
        let least = if changed > 0 { 100 } else { 128 * HELD };
        assert!((least..=MAX_LOOKED_AT).contains(&progress.looked_at), "{name}: {} looked at", progress.looked_at);
    }
}
