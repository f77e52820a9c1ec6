//! The picture of `dq top`.

use dq::inspect::{NodeSummary, Rates, TopicSummary};
use dq::time::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState, Wrap};

use super::model::{Action, Model};
use crate::safe::{cut, safe};
use crate::screen::grouped;
use crate::verbs::timeline::in_short;
use crate::verbs::topics::{needs_attention, state, waiting};
use crate::when::{beside, short};

const HEAD: [&str; 9] = ["TOPIC", "DELAYED", "READY", "RUNNING", "UNACKED", "DEAD", "DONE", "LATE", "STATE"];

const HELP: &str = "\
 up, down, j, k   select a topic          s, S    sort the page by the next key, or the previous one:
 Home, End, g, G  first and last          1 to 5  late, ready, running, dead, name
 n, PageDown      next page               p       pause the topic, or end its pause
 b, PageUp        page before             r, q    read now, quit";

/// Draws the picture.
pub fn draw(frame: &mut Frame<'_>, model: &Model) {
    let [title, topics, detail, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(4), Constraint::Length(10), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Line::from(heading(model)), title);
    draw_topics(frame, model, topics);
    match model.has_help {
        true => frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title(" keys ")), detail),
        false => draw_detail(frame, model, detail),
    }
    frame.render_widget(last_line(model), foot);
}

fn heading(model: &Model) -> String {
    let sum = |of: fn(&TopicSummary) -> usize| grouped(model.topics.iter().map(of).sum());
    let (ready, running, dead) = (sum(|topic| topic.ready), sum(|topic| topic.running), sum(|topic| topic.dead));
    let more = if model.next.is_some() { ", more follow" } else { "" };
    let clock = model
        .topics
        .iter()
        .find(|topic| topic.error.is_none())
        .map_or_else(String::new, |topic| crate::when::whole_seconds(topic.store_time));
    format!(
        "dq top  {}  {clock}  page {}{more}: {ready} ready, {running} running, {dead} dead  by {}",
        model.app,
        model.page(),
        model.sort.word()
    )
}

fn draw_topics(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    if model.topics.is_empty() {
        let text = match (&model.error, model.is_read) {
            (Some(_), _) | (None, false) => "reading ..",
            (None, true) => "the app has no topics: is that its name?",
        };
        return frame.render_widget(Paragraph::new(text), area);
    }
    let names = model.topics.iter().map(|topic| topic.topic.as_str().chars().count()).max().unwrap_or_default();
    let name = u16::try_from(names.clamp(8, 40)).unwrap_or(40);
    let widths = [Constraint::Length(name)].into_iter().chain([Constraint::Length(10); 6]);
    let widths = widths.chain([Constraint::Length(9), Constraint::Min(10)]);
    let head = Row::new(HEAD).style(Style::new().add_modifier(Modifier::BOLD));
    let table = Table::new(model.topics.iter().map(row), widths)
        .header(head)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut selected = TableState::new().with_selected(model.row());
    frame.render_stateful_widget(table, area, &mut selected);
}

fn row(topic: &TopicSummary) -> Row<'static> {
    let red = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
    let count = |number: usize| Cell::from(if number == 0 { "-".into() } else { grouped(number) });
    let warn = |cell: Cell<'static>, is_wrong: bool| if is_wrong { cell.style(red) } else { cell };
    let late = if topic.lateness.is_zero() { "-".into() } else { short(topic.lateness) };
    Row::new([
        Cell::from(cut(topic.topic.as_str(), 40)),
        warn(Cell::from(waiting(topic)), topic.at_capacity()),
        count(topic.ready),
        count(topic.running),
        count(topic.unacked),
        warn(count(topic.dead), topic.dead > 0),
        count(topic.done),
        Cell::from(late),
        warn(Cell::from(state(topic)), needs_attention(topic)),
    ])
}

fn draw_detail(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let name = model.selected.as_deref().unwrap_or_default();
    let block = Block::bordered().title(format!(" {} ", safe(name)));
    let lines = match &model.detail {
        None if name.is_empty() => Vec::new(),
        None => vec![Line::from("reading ..")],
        Some(topic) => detail(topic),
    };
    frame.render_widget(Paragraph::new(lines).block(block).wrap(Wrap { trim: false }), area);
}

fn detail(topic: &TopicSummary) -> Vec<Line<'static>> {
    if let Some(error) = &topic.error {
        return vec![Line::styled(safe(error), Style::new().fg(Color::Red))];
    }
    let head = topic.next_due.map_or_else(
        || "no job waits".into(),
        |head| format!("the first job is due {}", beside(head, topic.store_time)),
    );
    let mut lines = vec![Line::from(format!("{head}; state: {}", state(topic)))];
    lines.extend(topic.rates.as_ref().map(|rates| Line::from(rate(rates))));
    if topic.nodes.is_empty() && topic.watchers.is_empty() {
        let text = Span::styled("no node listens", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
        lines.push(Line::from(text));
    }
    lines.extend(topic.nodes.iter().map(|seen| node(seen, topic.store_time, "its lease ends", "its lease ended")));
    lines.extend(
        topic
            .watchers
            .iter()
            .map(|seen| node(seen, topic.store_time, "it listens, and comes again by", "it did not come by")),
    );
    lines
}

/// What ran a minute in the last five minutes, and how late.
fn rate(rates: &Rates) -> String {
    let late = rates.p50_lateness.zip(rates.p99_lateness).map_or_else(String::new, |(half, most)| {
        format!("; late: half up to {}, 99 % up to {}", in_short(half), in_short(most))
    });
    let (ran, failed) = (rates.per_minute(rates.ran), rates.per_minute(rates.failed));
    format!("{ran:.1} ran a minute, {failed:.1} of them failed{late}")
}

fn node(node: &NodeSummary, now: Timestamp, lives: &str, gone: &str) -> Line<'static> {
    let is_gone = node.until <= now;
    let what = if is_gone { gone } else { lives };
    let text =
        format!("{}  {} jobs  {what} {}", safe(&node.node.to_string()), grouped(node.jobs), beside(node.until, now));
    let style = if is_gone { Style::new().fg(Color::Red) } else { Style::new() };
    Line::from(Span::styled(text, style))
}

fn last_line(model: &Model) -> Line<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    match (&model.asks, &model.error, &model.said) {
        (Some(Action::Pause(topic)), ..) => Line::styled(format!("pause {topic} on all its nodes? y/n"), bold),
        (Some(Action::Resume(topic)), ..) => Line::styled(format!("end the pause of {topic}? y/n"), bold),
        (_, Some(error), _) => Line::styled(safe(error), Style::new().fg(Color::Red)),
        (_, _, Some(said)) => Line::from(safe(said)),
        _ => Line::from("? keys  s sort  p pause  n, b pages  q quit"),
    }
}
