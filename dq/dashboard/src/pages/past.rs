//! The picture of a topic that keeps statistics: what ran and how late, left of now, and what falls due, right of it.

use dq::inspect::{Bucket, Scale, StatsBucket, StatsBuckets};
use maud::{Markup, html};

use super::chart::{HEIGHT, WIDTH, ceiling, figure, round, span, when};
use super::overview;
use crate::show::{duration, number};

/// The colours of what falls due, what ran, also where more than one in a hundred was late, and what failed of it.
const DUE: &str = "c0";
const RAN: &str = "c4";
const RAN_LATE: &str = "c2";
const FAILED: &str = "c3";

/// Bars on both sides of now, with a table for those who do not see them.
pub(super) fn chart(past: &StatsBuckets, ahead: &[Bucket], scale: Scale) -> Markup {
    let (behind, whole) = (&past.spans, &past.whole);
    let due: usize = ahead.iter().map(|bucket| bucket.jobs).sum();
    let most = behind.iter().map(ran).chain(ahead.iter().map(|bucket| bucket.jobs)).max().unwrap_or_default();
    let top = ceiling(most.max(1));
    let label = format!("{}. {} jobs fall due in {}", sentence(whole, scale), number(due), span(scale));
    let ticks = ticks(behind, ahead).into_iter().map(|from| when(from, scale)).collect::<Vec<_>>();
    let legend = html! {
        li { span class={ "key " (RAN) } aria-hidden="true" {} "ran " b { (number(ran(whole))) } }
        li { span class={ "key " (RAN_LATE) } aria-hidden="true" {} "ran late, 5 s or more " b { (number(ran_late(behind))) } }
        li { span class={ "key " (FAILED) } aria-hidden="true" {} "failed " b { (count(whole.failed)) } }
        li { span class={ "key " (DUE) } aria-hidden="true" {} "falls due " b { (number(due)) } }
    };
    figure(&label, top, &bars(behind, ahead, top, scale), &ticks, &legend, &table(behind, ahead, scale))
}

fn count(number_of: u64) -> String {
    number(usize::try_from(number_of).unwrap_or(usize::MAX))
}

fn ran(span: &StatsBucket) -> usize {
    usize::try_from(span.ran).unwrap_or(usize::MAX)
}

/// Whether more than one in a hundred jobs of the span were late.
fn is_late(span: &StatsBucket) -> bool {
    span.p99_lateness.is_some_and(overview::is_late)
}

/// What ran in such spans.
fn ran_late(behind: &[StatsBucket]) -> usize {
    behind.iter().filter(|span| is_late(span)).map(ran).sum()
}

fn sentence(whole: &StatsBucket, scale: Scale) -> String {
    let span = if scale == Scale::Hours { "the last 24 hours" } else { "the last 60 minutes" };
    let late = match (whole.p50_lateness, whole.p99_lateness, whole.max_lateness) {
        (Some(half), Some(most), Some(latest)) => format!(
            "; half were claimed at most {} late, 99 of 100 at most {}, the latest {}",
            duration(half),
            duration(most),
            duration(latest)
        ),
        _ => String::new(),
    };
    format!("{} jobs ran in {span}, {} of them failed{late}", count(whole.ran), count(whole.failed))
}

fn bars(behind: &[StatsBucket], ahead: &[Bucket], top: usize, scale: Scale) -> Markup {
    let step = WIDTH / (behind.len() + ahead.len()).max(1) as f64;
    let height = |jobs: usize| jobs as f64 / top as f64 * HEIGHT;
    let bar = |class: &str, n: usize, below: f64, tall: f64| {
        html! {
            rect class=(class) x=(round(n as f64 * step + step * 0.12)) width=(round(step * 0.76))
                y=(round(HEIGHT - below - tall)) height=(round(tall)) {}
        }
    };
    let hit = |n: usize| html! { rect.hit x=(round(n as f64 * step)) y="0" width=(round(step)) height=(HEIGHT) {} };
    html! {
        @for (n, span) in behind.iter().enumerate() {
            g {
                title { (when(span.from, scale)) " to " (when(span.to, scale)) ": " (count(span.ran)) " ran, " (count(span.failed)) " failed"
                    @if let Some(most) = span.p99_lateness { ", 99 % at most " (duration(most)) " late" } }
                (hit(n))
                @if span.ran > 0 {
                    @let failed = height(usize::try_from(span.failed).unwrap_or(usize::MAX));
                    (bar(if is_late(span) { RAN_LATE } else { RAN }, n, failed, (height(ran(span)) - failed).max(1.5)))
                    @if span.failed > 0 { (bar(FAILED, n, 0.0, failed.max(1.5))) }
                }
            }
        }
        @for (n, bucket) in ahead.iter().enumerate() {
            g {
                title { (when(bucket.from, scale)) " to " (when(bucket.to, scale)) ": " (number(bucket.jobs)) " fall due" }
                (hit(behind.len() + n))
                @if bucket.jobs > 0 { (bar(DUE, behind.len() + n, 0.0, height(bucket.jobs).max(1.5))) }
            }
        }
        @let now = behind.len() as f64 * step;
        line.now x1=(round(now)) x2=(round(now)) y1="0" y2=(HEIGHT) {}
    }
}

fn ticks(behind: &[StatsBucket], ahead: &[Bucket]) -> Vec<dq::time::Timestamp> {
    let all: Vec<_> = behind.iter().map(|span| span.from).chain(ahead.iter().map(|bucket| bucket.from)).collect();
    let every = all.len().div_ceil(8).max(1);
    all.into_iter().step_by(every).collect()
}

/// The same in rows, for screen readers: those in which anything happened or will.
fn table(behind: &[StatsBucket], ahead: &[Bucket], scale: Scale) -> Markup {
    let late = |time: Option<std::time::Duration>| time.map_or_else(|| "none".to_owned(), duration);
    html! {
        div.hidden {
            table {
                caption { "What ran, and how late" }
                thead { tr {
                    @for name in ["From", "Ran", "Failed", "Became dead", "Half late by at most", "99 % late by at most", "Latest"] {
                        th scope="col" { (name) }
                    }
                } }
                tbody {
                    @for span in behind.iter().filter(|span| span.ran + span.claimed + span.dead > 0) {
                        tr {
                            th scope="row" { (when(span.from, scale)) }
                            td { (count(span.ran)) } td { (count(span.failed)) } td { (count(span.dead)) }
                            td { (late(span.p50_lateness)) } td { (late(span.p99_lateness)) } td { (late(span.max_lateness)) }
                        }
                    }
                }
            }
            table {
                caption { "What falls due" }
                thead { tr { th scope="col" { "From" } th scope="col" { "Jobs" } } }
                tbody {
                    @for bucket in ahead.iter().filter(|bucket| bucket.jobs > 0) {
                        tr { th scope="row" { (when(bucket.from, scale)) } td { (number(bucket.jobs)) } }
                    }
                }
            }
        }
    }
}
