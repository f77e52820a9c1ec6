//! Where a verb writes, and whom it asks.

use std::fmt;
use std::io::{self, BufRead, IsTerminal, Write};

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::failure::Failure;
use crate::frame::{ColorChoice, Common};
use crate::safe::{json, safe};

/// Where a verb writes its output.
pub struct Screen<'a> {
    out: &'a mut dyn Write,
    /// Who answers questions; `None` where nobody sits at a terminal.
    answers: Option<&'a mut dyn BufRead>,
    is_terminal: bool,
    has_color: bool,
    has_json: bool,
    agrees: bool,
}

impl<'a> Screen<'a> {
    /// A screen for what the command line wants, on any output.
    pub fn new(
        common: &Common,
        out: &'a mut dyn Write,
        is_terminal: bool,
        answers: Option<&'a mut dyn BufRead>,
    ) -> Self {
        let has_color = match common.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()),
        };
        Self { out, answers, is_terminal, has_color, has_json: common.json, agrees: common.yes }
    }

    /// Whether the user wants JSON.
    pub const fn is_json(&self) -> bool {
        self.has_json
    }

    /// Whether the output is a terminal.
    pub const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes a line. Texts of strangers go through [`safe`] first.
    ///
    /// # Errors
    /// [`Failure::Write`], also if nobody reads any more.
    pub fn line(&mut self, line: impl fmt::Display) -> Result<(), Failure> {
        writeln!(self.out, "{line}").map_err(Failure::Write)
    }

    /// Writes bytes that this program has made, as they are.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).map_err(Failure::Write)
    }

    /// Writes a value as a line of JSON.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = json(value).map_err(|error| Failure::Write(error.into()))?;
        self.line(line)
    }

    /// Writes a table as wide as the terminal. Its cells come from [`cell`], [`number`] and [`alarm`], which are safe.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn table(&mut self, head: &[&str], rows: Vec<Vec<Cell>>) -> Result<(), Failure> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).force_no_tty();
        if self.is_terminal {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width());
        }
        if self.has_color {
            table.enforce_styling();
        }
        table.set_header(head.iter().map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
        table.add_rows(rows);
        for line in table.lines() {
            self.line(line.trim_end())?;
        }
        Ok(())
    }

    /// The text in bold, where there are colours.
    pub fn bold(&self, text: &str) -> String {
        if self.has_color { format!("\u{1b}[1m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Says something beside the output, on stderr.
    pub fn say(&self, text: impl fmt::Display) {
        // A stderr that is closed is no reason to fail.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Asks before a destruction; `--yes` agrees beforehand.
    ///
    /// # Errors
    /// [`Failure::NotConfirmed`] if the answer is not yes, or if nobody can be asked.
    pub fn confirm(&mut self, what: &str) -> Result<(), Failure> {
        if self.agrees {
            return Ok(());
        }
        let refused = |asked| Failure::NotConfirmed { what: what.to_owned(), asked };
        let Some(answers) = self.answers.as_mut() else { return Err(refused(false)) };
        let _ = write!(io::stderr(), "{}? [y/N] ", safe(what));
        let mut answer = String::new();
        answers.read_line(&mut answer).map_err(Failure::Answer)?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(refused(true)),
        }
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// As [`line`](Self::line).
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(Failure::Write)
    }
}

impl fmt::Debug for Screen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").field("is_terminal", &self.is_terminal).finish_non_exhaustive()
    }
}

/// Whether somebody can be asked.
pub fn can_be_asked() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The columns of the terminal.
pub fn width() -> u16 {
    ratatui::crossterm::terminal::size().map_or(100, |(columns, _)| columns)
}

/// A cell with the text of a stranger.
pub fn cell(text: impl fmt::Display) -> Cell {
    Cell::new(safe(&text.to_string()))
}

/// A cell with a number; zero is empty, so that what matters stands out.
pub fn number(number: usize) -> Cell {
    right(if number == 0 { String::from("-") } else { grouped(number) })
}

/// A cell with a text that ends at its right edge.
pub fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(comfy_table::CellAlignment::Right)
}

/// A cell that says that something is wrong, if it says anything.
pub fn alarm(cell: Cell, is_wrong: bool) -> Cell {
    if is_wrong { cell.fg(Color::Red).add_attribute(Attribute::Bold) } else { cell }
}

/// A number of things, such as `1 job` and `1,200 jobs`.
pub fn many(number: usize, thing: &str) -> String {
    format!("{} {thing}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// A number with `,` between thousands.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
