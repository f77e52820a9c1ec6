//! `dq timeline`.

use clap::{Args, ValueEnum};
use dq::inspect::{Bucket, Timeline};
use dq::job::TopicName;

use crate::arguments::topic;
use crate::failure::Failure;
use crate::screen::{grouped, width};
use crate::session::Session;
use crate::when::{short, whole_seconds};

/// The columns of a bar where the output is no terminal, and at most.
const LONGEST_BAR: u16 = 60;

/// The columns beside a bar.
const BESIDE: u16 = 46;

/// The arguments of `dq timeline`.
#[derive(Debug, Args)]
pub struct TimelineArguments {
    /// The topic
    #[arg(value_name = "TOPIC", value_parser = topic)]
    pub topic: TopicName,
    /// The next 60 minutes, 24 hours or 30 days
    #[arg(long, short, value_name = "SCALE", value_enum, default_value = "hour")]
    pub scale: Scale,
}

/// How long a bar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// The next 60 minutes
    Minute,
    /// The next 24 hours
    Hour,
    /// The next 30 days
    Day,
}

/// Shows how many jobs fall due when.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &TimelineArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let timeline = provider.inspect().timeline(arguments.topic.as_str()).await?;
    if session.screen.is_json() {
        return session.screen.json(&timeline);
    }
    let bar =
        if session.screen.is_terminal() { width().saturating_sub(BESIDE).clamp(10, LONGEST_BAR) } else { LONGEST_BAR };
    for line in lines(&timeline, arguments.scale, usize::from(bar)) {
        session.screen.line(line)?;
    }
    Ok(())
}

/// The lines, with the empty spans in a row as one.
fn lines(timeline: &Timeline, by: Scale, columns: usize) -> Vec<String> {
    let buckets = match by {
        Scale::Minute => &timeline.minutes,
        Scale::Hour => &timeline.hours,
        Scale::Day => &timeline.days,
    };
    let most = buckets.iter().map(|bucket| bucket.jobs).chain([timeline.ready]).max().unwrap_or_default();
    let mut lines = vec![row("due already", timeline.ready, most, columns, true)];
    let mut empty: Vec<&Bucket> = Vec::new();
    for bucket in buckets {
        if bucket.jobs == 0 {
            empty.push(bucket);
            continue;
        }
        lines.extend(gap(&mut empty));
        lines.push(row(&whole_seconds(bucket.from), bucket.jobs, most, columns, bucket.is_exact));
    }
    lines.extend(gap(&mut empty));
    if buckets.iter().any(|bucket| !bucket.is_exact) {
        lines.push("~ is an estimate".into());
    }
    lines
}

fn gap(empty: &mut Vec<&Bucket>) -> Option<String> {
    let gap = empty.first().zip(empty.last()).map(|(first, last)| {
        format!("{:<20}  {:>12}  nothing for {}", whole_seconds(first.from), "-", short(last.to.since(first.from)))
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
