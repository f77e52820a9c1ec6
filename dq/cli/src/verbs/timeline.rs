//! `dq timeline`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use dq::inspect::{Bucket, RunStats, StatsBucket, Timeline};
use dq::job::TopicName;
use dq::time::Timestamp;
use serde::Serialize;

use crate::failure::Failure;
use crate::screen::{grouped, width};
use crate::session::Session;
use crate::verbs::topics::known;
use crate::when::{short, whole_seconds};

/// The columns of a bar where the output is no terminal, and at most.
const MAX_BAR: u16 = 60;

/// The columns beside a bar.
const BESIDE: u16 = 46;

/// The columns that a bar gives up to the words behind it, where the lines also say how late the jobs were.
const FOR_WORDS: usize = 30;

/// The arguments of `dq timeline`.
#[derive(Debug, Args)]
pub struct TimelineArguments {
    /// The topic
    #[arg(value_name = "TOPIC")]
    pub topic: TopicName,
    /// 60 minutes, 24 hours or 30 days
    #[arg(long, short, value_name = "SCALE", value_enum, default_value = "hour")]
    pub scale: Scale,
}

/// How long a bar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// The next 60 minutes, and the last 60 where the topic keeps statistics
    Minute,
    /// The next 24 hours, and the last 24 where the topic keeps statistics
    Hour,
    /// The next 30 days
    Day,
}

/// What is ahead and what is behind, as JSON.
#[derive(Debug, Serialize)]
struct Both {
    #[serde(flatten)]
    timeline: Timeline,
    past: Option<RunStats>,
}

/// Shows how many jobs ran when, and fall due when.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &TimelineArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    known(&provider, &arguments.topic).await?;
    let inspector = provider.inspect();
    let past = inspector.run_stats(arguments.topic.as_str()).await?;
    let timeline = inspector.timeline(arguments.topic.as_str()).await?;
    if session.screen.is_json() {
        return session.screen.json(&Both { timeline, past });
    }
    let bar = if session.screen.is_terminal() { width().saturating_sub(BESIDE).clamp(10, MAX_BAR) } else { MAX_BAR };
    for line in lines(&timeline, past.as_ref(), arguments.scale, usize::from(bar)) {
        session.screen.line(line)?;
    }
    Ok(())
}

/// The lines, what is behind first, with the empty spans in a row as one.
fn lines(timeline: &Timeline, past: Option<&RunStats>, by: Scale, columns: usize) -> Vec<String> {
    let (buckets, behind): (_, &[StatsBucket]) = match by {
        Scale::Minute => (&timeline.minutes, past.map_or(&[], |past| &past.minutes.spans)),
        Scale::Hour => (&timeline.hours, past.map_or(&[], |past| &past.hours.spans)),
        Scale::Day => (&timeline.days, &[]),
    };
    let ahead = buckets.iter().map(|bucket| bucket.jobs).chain([timeline.ready]);
    let most = ahead.chain(behind.iter().map(ran)).max().unwrap_or_default();
    let (columns, mut lines) = match behind {
        [] => (columns, Vec::new()),
        _ => (columns.saturating_sub(FOR_WORDS).max(10), vec!["what ran:".into()]),
    };
    let mut empty: Vec<(Timestamp, Timestamp)> = Vec::new();
    for span in behind {
        if span.ran == 0 && span.dead == 0 && span.claimed == 0 {
            empty.push((span.from, span.to));
            continue;
        }
        lines.extend(gap(&mut empty, "nothing ran"));
        let bar = bar(ran(span), most, columns);
        let line =
            format!("{:<20}  {:>12}  {bar:<columns$}  {}", whole_seconds(span.from), grouped(ran(span)), how(span));
        lines.push(line);
    }
    lines.extend(gap(&mut empty, "nothing ran"));
    if !behind.is_empty() {
        lines.push("what falls due:".into());
    }
    lines.push(row("due already", timeline.ready, most, columns, true));
    for bucket in buckets {
        if bucket.jobs == 0 {
            empty.push((bucket.from, bucket.to));
            continue;
        }
        lines.extend(gap(&mut empty, "nothing"));
        lines.push(row(&whole_seconds(bucket.from), bucket.jobs, most, columns, bucket.is_exact));
    }
    lines.extend(gap(&mut empty, "nothing"));
    if buckets.iter().any(|bucket: &Bucket| !bucket.is_exact) {
        lines.push("~ is an estimate".into());
    }
    lines
}

fn ran(span: &StatsBucket) -> usize {
    usize::try_from(span.ran).unwrap_or(usize::MAX)
}

/// How late the jobs of a span were, and what became of them.
fn how(span: &StatsBucket) -> String {
    let late =
        span.p99_lateness.map_or_else(|| "none claimed".into(), |most| format!("99 % up to {} late", in_short(most)));
    let of = |number: u64, what: &str| match number {
        0 => String::new(),
        number => format!(", {} {what}", grouped(usize::try_from(number).unwrap_or(usize::MAX))),
    };
    format!("{late}{}{}", of(span.failed, "failed"), of(span.dead, "dead"))
}

/// A lateness; milliseconds count up to ten seconds.
pub(crate) fn in_short(time: Duration) -> String {
    if time < Duration::from_secs(10) { format!("{}ms", time.as_millis()) } else { short(time) }
}

fn gap(empty: &mut Vec<(Timestamp, Timestamp)>, what: &str) -> Option<String> {
    let gap = empty.first().zip(empty.last()).map(|((from, _), (_, to))| {
        format!("{:<20}  {:>12}  {what} for {}", whole_seconds(*from), "-", short(to.since(*from)))
    });
    empty.clear();
    gap
}

fn row(name: &str, jobs: usize, most: usize, columns: usize, is_exact: bool) -> String {
    let about = if is_exact { " " } else { "~" };
    format!("{name:<20} {about}{:>12}  {}", grouped(jobs), bar(jobs, most, columns)).trim_end().to_owned()
}

/// A bar of eighths of a column; jobs that are there are always seen.
pub(crate) fn bar(jobs: usize, most: usize, columns: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if jobs == 0 || most == 0 {
        return String::new();
    }
    let eighths = (jobs.saturating_mul(columns * 8) / most).max(1);
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_and_never_vanish() {
        assert_eq!(bar(0, 10, 10), "");
        assert_eq!(bar(1, 1_000_000, 10), "▏");
        assert_eq!(bar(5, 10, 10), "█████");
        assert_eq!(bar(10, 10, 3), "███");
        assert_eq!(bar(3, 16, 2), "▍");
    }
}
