//! What `dq top` shows, and what each key does. It knows no terminal and no store.

use std::cmp::Reverse;

use clap::ValueEnum;
use dq::inspect::TopicSummary;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::reader::{Seen, Wanted};

/// By what the topics of a page are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The latest first; of equally late ones most DEAD jobs first
    Late,
    /// Most due jobs first
    Ready,
    /// Most RUNNING jobs first
    Running,
    /// Most DEAD jobs first
    Dead,
    /// By name
    Name,
}

impl Sort {
    /// The word for it.
    pub fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |word| word.get_name().to_owned())
    }

    /// The one so many places behind it.
    fn behind(self, places: usize) -> Self {
        let all = Self::value_variants();
        let here = all.iter().position(|sort| *sort == self).unwrap_or_default();
        all[(here + places) % all.len()]
    }

    /// The one of a digit, from 1.
    fn of_digit(digit: char) -> Option<Self> {
        let number = usize::try_from(digit.to_digit(10)?).ok()?;
        Self::value_variants().get(number.checked_sub(1)?).copied()
    }
}

/// What a key asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing but another picture.
    Nothing,
    /// Read what is [wanted](Model::wanted) now.
    Read,
    /// Pause this topic.
    Pause(String),
    /// End the pause of this topic.
    Resume(String),
    /// End.
    Quit,
}

/// What is shown.
#[derive(Debug)]
pub struct Model {
    pub(super) app: String,
    pub(super) topics: Vec<TopicSummary>,
    pub(super) detail: Option<TopicSummary>,
    pub(super) selected: Option<String>,
    pub(super) sort: Sort,
    /// The last message: of a change, or why nothing could be read.
    pub(super) said: Option<String>,
    pub(super) error: Option<String>,
    /// The topic whose pause waits for a yes.
    pub(super) asks: Option<Action>,
    pub(super) has_help: bool,
    pub(super) is_read: bool,
    /// Where the pages up to this one begin.
    starts: Vec<Option<String>>,
    pub(super) next: Option<String>,
}

impl Model {
    /// Nothing is read yet.
    pub fn new(app: String, sort: Sort) -> Self {
        Self {
            app,
            topics: Vec::new(),
            detail: None,
            selected: None,
            sort,
            said: None,
            error: None,
            asks: None,
            has_help: false,
            is_read: false,
            starts: vec![None],
            next: None,
        }
    }

    /// What to read.
    pub fn wanted(&self) -> Wanted {
        Wanted { after: self.starts.last().cloned().flatten(), selected: self.selected.clone() }
    }

    /// The number of the page.
    pub(super) fn page(&self) -> usize {
        self.starts.len()
    }

    /// Shows what was read; what was read for another page is left out.
    pub fn show(&mut self, seen: Seen) {
        if seen.wanted.after != self.wanted().after {
            return;
        }
        match seen.page {
            Err(error) => self.error = Some(error),
            Ok((page, detail)) => {
                self.error = None;
                self.is_read = true;
                self.topics = page.topics;
                self.next = page.next;
                self.arrange();
                let is_there = |name: &String| self.topics.iter().any(|topic| topic.topic.as_str() == name);
                if !self.selected.as_ref().is_some_and(is_there) {
                    self.selected = self.topics.first().map(|topic| topic.topic.to_string());
                }
                let of_selected = |seen: &TopicSummary| Some(seen.topic.as_str()) == self.selected.as_deref();
                self.detail = detail.filter(of_selected).or_else(|| self.detail.take().filter(of_selected));
            }
        }
    }

    /// Says what a change did.
    pub fn say(&mut self, text: String) {
        self.said = Some(text);
    }

    /// The row that is selected.
    pub fn row(&self) -> Option<usize> {
        let selected = self.selected.as_deref()?;
        self.topics.iter().position(|topic| topic.topic.as_str() == selected)
    }

    /// Does what a key means.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if let Some(asked) = self.asks.take() {
            return if matches!(key.code, KeyCode::Char('y' | 'Y')) { asked } else { Action::Nothing };
        }
        if self.has_help {
            self.has_help = false;
            return Action::Nothing;
        }
        match key.code {
            KeyCode::Char('c') if has_control => Action::Quit,
            KeyCode::Char('q') | KeyCode::Esc => Action::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.step(|row, _| row.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.step(|row, last| (row + 1).min(last)),
            KeyCode::Home | KeyCode::Char('g') => self.step(|_, _| 0),
            KeyCode::End | KeyCode::Char('G') => self.step(|_, last| last),
            KeyCode::PageDown | KeyCode::Char('n') => self.next_page(),
            KeyCode::PageUp | KeyCode::Char('b') => self.page_before(),
            KeyCode::Char('s') => self.sorted(self.sort.behind(1)),
            KeyCode::Char('S') => self.sorted(self.sort.behind(Sort::value_variants().len() - 1)),
            KeyCode::Char(digit @ '1'..='5') => self.sorted(Sort::of_digit(digit).unwrap_or(self.sort)),
            KeyCode::Char('p') => {
                self.asks = self.pause_or_resume();
                Action::Nothing
            }
            KeyCode::Char('r') => Action::Read,
            KeyCode::Char('?' | 'h') => {
                self.has_help = true;
                Action::Nothing
            }
            _ => Action::Nothing,
        }
    }

    fn step(&mut self, to: impl Fn(usize, usize) -> usize) -> Action {
        let Some(last) = self.topics.len().checked_sub(1) else { return Action::Nothing };
        let row = to(self.row().unwrap_or_default(), last);
        self.selected = Some(self.topics[row].topic.to_string());
        self.detail = None;
        Action::Read
    }

    fn next_page(&mut self) -> Action {
        let Some(next) = self.next.take() else { return Action::Nothing };
        self.starts.push(Some(next));
        self.at_page()
    }

    fn page_before(&mut self) -> Action {
        if self.starts.len() == 1 {
            return Action::Nothing;
        }
        self.starts.pop();
        self.at_page()
    }

    fn at_page(&mut self) -> Action {
        self.topics.clear();
        (self.selected, self.detail, self.is_read) = (None, None, false);
        Action::Read
    }

    fn pause_or_resume(&self) -> Option<Action> {
        let topic = &self.topics[self.row()?];
        let name = topic.topic.to_string();
        Some(if topic.state.pause.is_some() { Action::Resume(name) } else { Action::Pause(name) })
    }

    fn sorted(&mut self, sort: Sort) -> Action {
        self.sort = sort;
        self.arrange();
        Action::Nothing
    }

    fn arrange(&mut self) {
        self.topics.sort_by(|one, other| one.topic.cmp(&other.topic));
        match self.sort {
            Sort::Name => {}
            Sort::Late => self.topics.sort_by_key(|topic| Reverse((topic.error.is_some(), topic.lateness, topic.dead))),
            Sort::Ready => self.topics.sort_by_key(|topic| Reverse(topic.ready)),
            Sort::Running => self.topics.sort_by_key(|topic| Reverse(topic.running)),
            Sort::Dead => self.topics.sort_by_key(|topic| Reverse(topic.dead)),
        }
    }
}
