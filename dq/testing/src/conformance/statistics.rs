//! What a topic counts of itself where a link counts (rule 31).

use super::inspection::inspector;
use super::producer::{job, retained};
use super::ticks::{new, tick};
use super::topic::{MAX_CRASHES, Topic, ms, secs};
use dq::inspect::Scale;
use dq::job::{Cause, Metadata, State};
use dq::store::step::{Change, MAX_JOBS, Outcome, RejoinDue, Verdict};
use dq::store::{MAX_MINUTES, MinuteCounts};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3_600);

impl Topic {
    /// The minute of the store's clock.
    fn minute(&self) -> u64 {
        self.now().as_millis() / 60_000
    }

    /// What was counted in the last day.
    async fn statistics(&self) -> Vec<MinuteCounts> {
        let to = self.minute();
        self.store.statistics(&self.key, to + 1 - MAX_MINUTES, to).await.expect("statistics is answered")
    }

    /// What was counted in the only minute in which anything was.
    async fn counted(&self) -> MinuteCounts {
        let minutes = self.statistics().await;
        assert_eq!(minutes.len(), 1, "{minutes:?}");
        minutes[0]
    }
}

/// A transfer counts the jobs that it claims, and how late each of them is; one that claims nothing counts nothing (rule 31).
pub async fn claims_are_counted_with_their_lateness(t: &Topic) {
    t.counts_steps_of("n");
    t.transfer("n", 10).await;
    assert_eq!(t.statistics().await, []);
    for (n, after) in [(0, 0), (1, 89), (2, 1)] {
        t.add(&format!("j{n}")).await;
        t.add(&format!("k{n}")).await;
        t.advance(ms(after)).await;
    }
    assert_eq!(t.claims("n").await.len(), 6);
    let (late, sum) = ([2, 4, 0, 0, 0, 0, 0, 0], 4 * 90 + 2);
    let expected =
        MinuteCounts { minute: t.minute(), claimed: 6, late_sum: sum, late_most: 90, late, ..MinuteCounts::default() };
    assert_eq!(t.counted().await, expected);
    t.add("later").await;
    t.advance(secs(1) + ms(1)).await;
    t.claim("n", "later").await;
    let counted = t.counted().await;
    assert_eq!((counted.late, counted.late_most, counted.late_sum), ([2, 4, 0, 1, 0, 0, 0, 0], 1_001, sum + 1_001));
}

/// A settle counts each run by its outcome; a job that is given back, or expired before it ran, has not run (rule 31).
pub async fn ends_of_runs_are_counted_by_their_outcomes(t: &Topic) {
    t.counts_steps_of("n");
    let changes = [
        Change::Ack,
        Change::Ack,
        Change::Rejoin(RejoinDue::After(secs(60))),
        Change::Retry(secs(60)),
        Change::Dead,
        Change::Park,
        Change::Rollback,
    ];
    t.add_all((0..changes.len()).map(|n| job(&format!("j{n}"))).chain([retained("kept"), job("old")]).collect()).await;
    let claims = t.claims("n").await;
    let mut outcomes: Vec<_> = claims.iter().zip(changes).map(|(claim, change)| claim.outcome(change)).collect();
    let [old] = &claims[claims.len() - 1..] else { panic!("{claims:?}") };
    assert_eq!(old.id.as_str(), "old");
    outcomes.push(claims[claims.len() - 2].outcome(Change::Ack));
    let expired = Metadata { cause: Some(Cause::Expired), exhausted: true, ..Metadata::default() };
    outcomes.push(Outcome { metadata: Some(expired), ..old.outcome(Change::Dead) });
    assert_eq!(t.settle_all("n", outcomes).await.verdicts, vec![Verdict::Done; 9]);
    let counted = t.counted().await;
    let MinuteCounts { claimed, ran, done, failed, dead, .. } = counted;
    assert_eq!((claimed, ran, done, failed, dead), (9, 7, 3, 2, 2), "{counted:?}");
}

/// A settle that only acks counts all of them at once (rule 31).
pub async fn a_batch_of_acks_is_counted(t: &Topic) {
    t.counts_steps_of("n");
    t.add_all((0..MAX_JOBS).map(|n| job(&format!("{n:04}"))).collect()).await;
    let claims = t.claims("n").await;
    for part in claims.chunks(600) {
        t.settle_all("n", part.iter().map(|claim| claim.outcome(Change::Ack)).collect()).await;
    }
    let MinuteCounts { claimed, ran, done, failed, .. } = t.counted().await;
    assert_eq!((claimed, ran, done, failed), (1_000, 1_000, 1_000, 0));
}

/// A tick of a schedule counts as a run, and its jobs are added by the step that counts it (rules 30, 31).
pub async fn a_tick_counts_as_a_run(t: &Topic) {
    t.counts_steps_of("n");
    let schedule = t.running("n", "s").await;
    let change = Change::Tick(Box::new(tick(t, vec![new("a"), new("b")])));
    t.end("n", &schedule, change).await;
    assert_eq!((t.state("a").await, t.due("s").await), (Some(State::Delayed), t.in_ms(10_000)));
    let MinuteCounts { claimed, ran, done, failed, .. } = t.counted().await;
    assert_eq!((claimed, ran, done, failed), (1, 1, 0, 0));
}

/// A job that its crashes make DEAD is counted by the node that reclaims it, as DEAD and as no run (rules 19, 31).
pub async fn crashes_that_make_a_job_dead_are_counted(t: &Topic) {
    t.counts_steps_of("reclaimer");
    t.counts_steps_of("n");
    t.add("killer").await;
    for _ in 0..MAX_CRASHES + 2 {
        let claims = t.claims("n").await;
        let Some(claim) = claims.first() else { break };
        t.isolate("n", claim).await;
        if claim.crashes >= MAX_CRASHES {
            let exhausted = Metadata { cause: Some(Cause::Crashes), exhausted: true, ..Metadata::default() };
            t.exhaust("n", claim, exhausted).await;
        }
        t.crash("n").await;
    }
    assert_eq!(t.state("killer").await, Some(State::Dead));
    let (mut dead, mut ran) = (0, 0);
    for counted in t.statistics().await {
        (dead, ran) = (dead + counted.dead, ran + counted.ran);
    }
    assert_eq!((dead, ran), (1, 0));
}

/// An outcome whose run the node does not hold any more is not counted, alone and among others (rules 10, 31).
pub async fn stale_outcomes_are_not_counted(t: &Topic) {
    t.counts_steps_of("n");
    let first = t.running("n", "a").await;
    t.end("n", &first, Change::Rollback).await;
    let second = t.claim("n", "a").await;
    assert_eq!(t.settle("n", &first, Change::Ack).await, Verdict::Stale);
    assert_eq!(t.settle("n", &first, Change::Retry(secs(1))).await, Verdict::Stale);
    let MinuteCounts { claimed, ran, failed, .. } = t.counted().await;
    assert_eq!((claimed, ran, failed), (2, 0, 0));
    let other = t.running("n", "b").await;
    let settled = t.settle_all("n", vec![first.outcome(Change::Ack), other.outcome(Change::Ack)]).await;
    assert_eq!(settled.verdicts, [Verdict::Stale, Verdict::Done]);
    t.end("n", &second, Change::Ack).await;
    let MinuteCounts { ran, done, .. } = t.counted().await;
    assert_eq!((ran, done), (2, 2));
}

/// What a sweep claims was not due, so only the end of its run is counted (rules 25, 31).
pub async fn parked_jobs_that_are_swept_are_no_claims_of_due_ones(t: &Topic) {
    t.counts_steps_of("n");
    t.add_and_run("n", "a", Change::Park).await;
    t.advance(7 * DAY).await;
    let claim = t.claim_unacked("n", "a").await;
    t.end("n", &claim, Change::Ack).await;
    let MinuteCounts { claimed, ran, done, late_sum, .. } = t.counted().await;
    assert_eq!((claimed, ran, done, late_sum), (0, 1, 1, 0));
}

/// Nothing is counted of a link that does not count, and nothing that another one counted changes (rule 31).
pub async fn a_link_that_does_not_count_leaves_nothing(t: &Topic) {
    t.add_and_run("n", "a", Change::Dead).await;
    assert_eq!(t.statistics().await, []);
    let overview = t.store.overview(&t.key, 0).await.expect("overview is answered");
    assert_eq!(overview.recent, None);
    assert_eq!(inspector(t).run_stats(t.key.topic.as_str()).await.expect("past is answered"), None);
    t.counts_steps_of("counts");
    t.running("counts", "b").await;
    let counted = t.counted().await;
    t.add_and_run("n", "c", Change::Ack).await;
    assert_eq!(t.counted().await, counted);
}

/// A minute of the store's clock begins with nothing counted, and those before it stay (rule 31).
pub async fn each_minute_has_its_own_statistics(t: &Topic) {
    t.counts_steps_of("n");
    let first = t.minute();
    let claim = t.running("n", "a").await;
    t.advance(secs(60)).await;
    t.end("n", &claim, Change::Ack).await;
    let minutes = t.statistics().await;
    let seen: Vec<_> = minutes.iter().map(|counts| (counts.minute, counts.claimed, counts.done)).collect();
    assert_eq!(seen, [(first, 1, 0), (first + 1, 0, 1)]);
    let one = t.store.statistics(&t.key, first + 1, first + 1).await.expect("statistics is answered");
    assert_eq!(one, minutes[1..]);
}

/// A minute takes the place of that of the day before, so what is kept is bounded (rule 31).
pub async fn statistics_of_a_day_ago_make_room(t: &Topic) {
    t.counts_steps_of("n");
    t.running("n", "a").await;
    let before = t.minute();
    t.set_clock(t.micros() + DAY.as_micros() as u64).await;
    assert_eq!(t.statistics().await, [], "of a day ago");
    t.running("n", "b").await;
    assert_eq!(t.counted().await.claimed, 1);
    let first = t.store.statistics(&t.key, before, before).await.expect("statistics is answered");
    assert_eq!(first, []);
}

/// An overview has the sum of the present minute and the five before it (query `overview`).
pub async fn overview_has_the_statistics_of_the_last_minutes(t: &Topic) {
    t.counts_steps_of("n");
    for n in 0..7 {
        t.add(&format!("j{n}")).await;
        t.advance(ms(20)).await;
        let claims = t.claims("n").await;
        t.settle_all("n", claims.iter().map(|claim| claim.outcome(Change::Ack)).collect()).await;
        t.advance(secs(60)).await;
    }
    let recent = t.store.overview(&t.key, 0).await.expect("overview is answered").recent.expect("the topic counts");
    assert_eq!((recent.minute, recent.claimed, recent.ran, recent.late_sum), (t.minute() - 5, 5, 5, 100));
    let topic = inspector(t).topic(t.key.topic.as_str()).await.expect("the topic is read");
    let rates = topic.rates.expect("the topic counts");
    assert_eq!((rates.claimed, rates.ran, rates.failed), (5, 5, 0));
    assert!((0.8..1.0).contains(&rates.per_minute(rates.ran)), "{rates:?}");
    assert_eq!(rates.p99_lateness, Some(ms(20)));
    t.advance(secs(600)).await;
    let idle =
        inspector(t).topic(t.key.topic.as_str()).await.expect("the topic is read").rates.expect("it counted today");
    assert_eq!((idle.ran, idle.p99_lateness), (0, None));
}

/// The inspector sums minutes to hours, and the last of each is the present one.
pub async fn past_has_the_minutes_of_an_hour_and_the_hours_of_a_day(t: &Topic) {
    t.counts_steps_of("n");
    t.add("a").await;
    t.advance(ms(300)).await;
    t.run("n", "a", Change::Retry(secs(7_200))).await;
    t.advance(secs(7_200)).await;
    t.run("n", "a", Change::Ack).await;
    let past = inspector(t).run_stats(t.key.topic.as_str()).await.expect("past is answered").expect("the topic counts");
    let (minutes, hours) = (&past.minutes.spans, &past.hours.spans);
    assert_eq!((minutes.len(), hours.len(), past.now), (60, 24, t.now()));
    let last = minutes.last().expect("there are sixty");
    assert!(last.from <= t.now() && t.now() < last.to, "{last:?}");
    assert_eq!((last.claimed, last.ran, last.done, last.failed), (1, 1, 1, 0));
    assert_eq!((past.minutes.whole.ran, past.hours.whole.ran, past.hours.whole.max_lateness), (1, 2, Some(ms(300))));
    let (earlier, present) = (&hours[21], &hours[23]);
    assert_eq!((earlier.claimed, earlier.failed, present.done), (1, 1, 1));
    assert_eq!(
        (earlier.max_lateness, earlier.p50_lateness, earlier.mean_lateness),
        (Some(ms(300)), Some(ms(300)), Some(ms(300)))
    );
    assert!(hours.windows(2).all(|hours| hours[0].to == hours[1].from), "{hours:?}");
    let topic = t.key.topic.as_str();
    let hour = inspector(t).past_of(topic, Scale::Minutes, t.now()).await.expect("past_of is answered");
    assert_eq!(hour, past.minutes);
    let day = inspector(t).past_of(topic, Scale::Hours, t.now()).await.expect("past_of is answered");
    assert_eq!(day, past.hours);
    let days = inspector(t).past_of(topic, Scale::Days, t.now()).await.expect("past_of is answered");
    assert_eq!(days.spans, []);
}
