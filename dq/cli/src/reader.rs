//! Reads an export line by line and checks that the lines come in their order.

use std::io::{self, BufRead, Read};

use crate::line::{End, FORMAT, Line, MAX_LINE, Start};

/// What is wrong with the input.
#[derive(Debug)]
pub(crate) enum BadInput {
    /// It cannot be read.
    Io(io::Error),
    /// This line is not right.
    Line(String),
}

/// Reads lines.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    input: R,
    /// The number of the last line that was read.
    pub(crate) number: u64,
    /// The bytes of the last line that was read.
    pub(crate) size: u64,
    text: Vec<u8>,
    /// How many lines of each kind came, as the last line says it.
    read: End,
    /// The last line was read.
    pub(crate) is_over: bool,
}

impl<R: BufRead> Reader<R> {
    pub(crate) const fn new(input: R) -> Self {
        Self { input, number: 0, size: 0, text: Vec::new(), read: End::NONE, is_over: false }
    }

    /// The first line.
    pub(crate) fn start(&mut self) -> Result<Start, BadInput> {
        let first = "the first line of an export is `{\"export\":{\"format\":1,\"app\":..}}`";
        match self.line()? {
            Some(Line::Export(start)) if start.format == FORMAT => Ok(start),
            Some(Line::Export(Start { format, .. })) => Err(BadInput::Line(format!(
                "the export has format {format}, and this program reads format {FORMAT}: use a newer one"
            ))),
            Some(_) => Err(BadInput::Line(format!("{first}, and this is another one"))),
            None => Err(BadInput::Line(format!("the input is empty, and {first}"))),
        }
    }

    /// The next line behind the first one; `None` at the end of the input. The last line is checked, not answered.
    pub(crate) fn next(&mut self) -> Result<Option<Line>, BadInput> {
        loop {
            match self.line()? {
                Some(_) if self.is_over => return Err(BadInput::Line("it comes after the last line, `end`".into())),
                Some(Line::Export(_)) => {
                    return Err(BadInput::Line("a second export begins here: import one after the other".into()));
                }
                Some(Line::End(end)) if end == self.read => self.is_over = true,
                Some(Line::End(end)) => {
                    let why = match (end.jobs, self.read.jobs) {
                        (had, came) if had == came => {
                            format!("{} lines with follow-ups, and {}", end.follow_ups, self.read.follow_ups)
                        }
                        (had, came) => format!("{had} jobs, and {came}"),
                    };
                    let why = format!("the export had {why} came: it was changed or cut");
                    return Err(BadInput::Line(format!("{why}; `--partial` accepts one without its last line")));
                }
                Some(line) => {
                    self.read.jobs += u64::from(matches!(line, Line::Job(_)));
                    self.read.follow_ups += u64::from(matches!(line, Line::FollowUps(_)));
                    return Ok(Some(line));
                }
                None => return Ok(None),
            }
        }
    }

    fn line(&mut self) -> Result<Option<Line>, BadInput> {
        self.text.clear();
        self.number += 1;
        let mut limited = (&mut self.input).take(MAX_LINE as u64 + 1);
        self.size = limited.read_until(b'\n', &mut self.text).map_err(BadInput::Io)? as u64;
        if self.text.is_empty() {
            return Ok(None);
        }
        if self.text.len() > MAX_LINE {
            return Err(BadInput::Line(format!("it has more than {MAX_LINE} bytes, which no line of an export has")));
        }
        let line = serde_json::from_slice(&self.text);
        line.map(Some).map_err(|error| BadInput::Line(without_line(&error)))
    }
}

/// The error with its column, and without the number of the line, which is always 1 here.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what} (column {})", error.column())
}
