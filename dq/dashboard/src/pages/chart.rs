//! The picture of what falls due, drawn on the server.

use std::sync::Arc;

use dq::inspect::{Bucket, Scale};
use dq::time::Timestamp;
use maud::{Markup, html};

use crate::frame::Frame;
use crate::show::{clock, day, number};

/// The colours of the series; what is left over shares the last one.
const COLOURS: usize = 6;

pub(super) const WIDTH: f64 = 1_000.0;
pub(super) const HEIGHT: f64 = 190.0;

/// One topic of a chart.
pub(crate) type Series = (String, Arc<[Bucket]>);

/// The name of a scale in links.
pub(crate) const fn word(scale: Scale) -> &'static str {
    match scale {
        Scale::Hours => "hours",
        Scale::Days => "days",
        _ => "minutes",
    }
}

pub(crate) fn scale(word: &str) -> Scale {
    match word {
        "hours" => Scale::Hours,
        "days" => Scale::Days,
        _ => Scale::Minutes,
    }
}

pub(crate) const fn span(scale: Scale) -> &'static str {
    match scale {
        Scale::Hours => "the next 24 hours",
        Scale::Days => "the next 30 days",
        _ => "the next 60 minutes",
    }
}

/// Links to the three scales of a page.
pub(crate) fn scales(frame: &Frame, page: &str, query: &[(&str, &str)], active: Scale) -> Markup {
    html! {
        nav.tabs aria-label="Time span" {
            @for (scale, name) in [(Scale::Minutes, "60 minutes"), (Scale::Hours, "24 hours"), (Scale::Days, "30 days")] {
                @let query: Vec<_> = query.iter().copied().chain([("scale", word(scale))]).collect();
                a href=(frame.to(page, &query)) aria-current=[(scale == active).then_some("true")] { (name) }
            }
        }
    }
}

/// Stacked bars, a series each; the largest series have colours of their own.
pub(crate) fn stacked(mut series: Vec<Series>, scale: Scale) -> Markup {
    series.retain(|(_, buckets)| buckets.iter().any(|bucket| bucket.jobs > 0));
    series.sort_by_key(|(name, buckets)| (std::cmp::Reverse(total(buckets)), name.clone()));
    let Some(longest) = series.iter().map(|(_, buckets)| buckets).max_by_key(|buckets| buckets.len()).cloned() else {
        return html! { p.empty { "Nothing falls due in " (span(scale)) "." } };
    };
    let others = merge(&series, COLOURS - 1);
    let sums: Vec<usize> =
        (0..longest.len()).map(|n| others.iter().map(|(_, jobs)| jobs.get(n).copied().unwrap_or(0)).sum()).collect();
    let all: usize = sums.iter().sum();
    let is_exact = series.iter().all(|(_, buckets)| buckets.iter().all(|bucket| bucket.is_exact));
    let (most, top) = (sums.iter().copied().max().unwrap_or(0), ceiling(sums.iter().copied().max().unwrap_or(1)));
    let label = format!(
        "{}{} jobs fall due in {}; at most {} {}",
        if is_exact { "" } else { "About " },
        number(all),
        span(scale),
        number(most),
        match scale {
            Scale::Hours => "in an hour",
            Scale::Days => "in a day",
            _ => "in a minute",
        },
    );
    let ticks = ticks(&longest).into_iter().map(|bucket| when(bucket.from, scale)).collect::<Vec<_>>();
    let legend = html! {
        @for (n, (name, jobs)) in others.iter().enumerate() {
            li { span class={ "key c" (n) } aria-hidden="true" {} (name) " " b { (number(jobs.iter().sum())) } }
        }
    };
    figure(&label, top, &bars(&others, &longest, &sums, top, scale), &ticks, &legend, &html! {})
}

/// A picture of bars up to `top`, with what it says in words, and `more` below it.
pub(super) fn figure(
    label: &str,
    top: usize,
    bars: &Markup,
    ticks: &[String],
    legend: &Markup,
    more: &Markup,
) -> Markup {
    html! {
        figure.chart {
            svg viewBox=(format!("0 0 {WIDTH} {}", HEIGHT + 24.0)) role="img" aria-label=(label) preserveAspectRatio="none" {
                @for part in [0.0, 0.5, 1.0] {
                    @let y = HEIGHT * (1.0 - part);
                    line.grid x1="0" x2=(WIDTH) y1=(y) y2=(y) {}
                }
                (bars)
            }
            div.axis aria-hidden="true" { span { (number(top)) } span { (number(top / 2)) } span { "0" } }
            div.ticks aria-hidden="true" { @for tick in ticks { span { (tick) } } }
            figcaption { span.sum { (label) "." } ul.legend { (legend) } }
            (more)
        }
    }
}

fn bars(parts: &[(String, Vec<usize>)], buckets: &[Bucket], sums: &[usize], top: usize, scale: Scale) -> Markup {
    let step = WIDTH / buckets.len().max(1) as f64;
    let height = |jobs: usize| jobs as f64 / top.max(1) as f64 * HEIGHT;
    html! {
        @for (n, bucket) in buckets.iter().enumerate() {
            g {
                title { (when(bucket.from, scale)) " to " (when(bucket.to, scale)) ": " (number(sums[n])) " jobs" }
                rect.hit x=(round(n as f64 * step)) y="0" width=(round(step)) height=(HEIGHT) {}
                @for (colour, _) in parts.iter().enumerate() {
                    @let (below, jobs) = (stack(parts, colour, n), parts[colour].1.get(n).copied().unwrap_or(0));
                    @if jobs > 0 {
                        @let tall = height(jobs).max(1.5);
                        rect class={ "c" (colour) } x=(round(n as f64 * step + step * 0.12)) width=(round(step * 0.76))
                            y=(round(HEIGHT - height(below) - tall)) height=(round(tall)) {}
                    }
                }
            }
        }
    }
}

fn stack(parts: &[(String, Vec<usize>)], colour: usize, n: usize) -> usize {
    parts[..colour].iter().map(|(_, jobs)| jobs.get(n).copied().unwrap_or(0)).sum()
}

fn total(buckets: &[Bucket]) -> usize {
    buckets.iter().map(|bucket| bucket.jobs).sum()
}

/// The first series, and all others together.
fn merge(series: &[Series], most: usize) -> Vec<(String, Vec<usize>)> {
    let jobs = |buckets: &[Bucket]| buckets.iter().map(|bucket| bucket.jobs).collect::<Vec<_>>();
    let mut parts: Vec<_> = series.iter().take(most).map(|(name, buckets)| (name.clone(), jobs(buckets))).collect();
    let rest = series.get(most..).unwrap_or_default();
    if !rest.is_empty() {
        let mut sums = Vec::new();
        for (_, buckets) in rest {
            sums.resize(sums.len().max(buckets.len()), 0);
            buckets.iter().zip(&mut sums).for_each(|(bucket, sum)| *sum += bucket.jobs);
        }
        parts.push((format!("{} more {}", rest.len(), if rest.len() == 1 { "topic" } else { "topics" }), sums));
    }
    parts
}

/// The next round number that is even: 2, 4, 10, 20, 40, 100, ..
pub(super) fn ceiling(most: usize) -> usize {
    let mut unit = 1;
    loop {
        for step in [2, 4, 6, 10] {
            if step * unit >= most {
                return step * unit;
            }
        }
        unit *= 10;
    }
}

fn ticks(buckets: &[Bucket]) -> Vec<&Bucket> {
    buckets.iter().step_by(buckets.len().div_ceil(6).max(1)).collect()
}

pub(super) fn when(at: Timestamp, scale: Scale) -> String {
    if scale == Scale::Days { day(at) } else { clock(at) }
}

pub(super) fn round(n: f64) -> String {
    format!("{n:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_with_a_round_number() {
        assert_eq!([1, 3, 7, 11, 55, 60, 61, 999].map(ceiling), [2, 4, 10, 20, 60, 60, 100, 1_000]);
    }
}
