//! What clients ask of a server, as `MONITOR` shows it.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::redis::{RedisServer, ask};

/// What says only that nothing has come yet.
const PASSING: [ErrorKind; 3] = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];

/// A connection on which the server shows every command.
#[derive(Debug)]
pub struct Monitor {
    lines: BufReader<TcpStream>,
    /// What was read of a line that is not whole yet.
    begun: Vec<u8>,
}

impl Monitor {
    /// Shows what comes from now on.
    pub fn start(server: &RedisServer) -> Self {
        let mut stream = server.connect();
        assert_eq!(ask(&mut stream, &["MONITOR"]), "+OK");
        Self { lines: BufReader::new(stream), begun: Vec::new() }
    }

    /// The commands of clients up to `end`, which is an `ECHO` of somebody; what scripts call is left out.
    pub fn until(&mut self, end: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let line = self.line(None).expect("the server is there");
            if line.contains("\"ECHO\"") && line.contains(end) {
                return seen;
            }
            seen.extend(Some(line).filter(|line| is_of_a_client(line)));
        }
    }

    /// The commands of clients, until for this long there was none.
    pub fn until_silent_for(&mut self, time: Duration) -> Vec<String> {
        let mut seen = Vec::new();
        let mut last = Instant::now();
        while let Some(line) = self.line(Some(last + time)) {
            if is_of_a_client(&line) {
                last = Instant::now();
                seen.push(line);
            }
        }
        seen
    }

    /// The commands of clients within this time.
    pub fn within(&mut self, time: Duration) -> Vec<String> {
        let (end, mut seen) = (Instant::now() + time, Vec::new());
        while let Some(line) = self.line(Some(end)) {
            seen.extend(Some(line).filter(|line| is_of_a_client(line)));
        }
        seen
    }

    fn line(&mut self, end: Option<Instant>) -> Option<String> {
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            self.lines.get_ref().set_read_timeout(left).expect("it is a time");
            // A process that was stopped and goes on is told so, and looks at the time again: `read_line` would not.
            match self.lines.fill_buf() {
                Ok([]) => panic!("the server closed the connection"),
                Ok(bytes) => {
                    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
                    self.begun.extend_from_slice(&bytes[..end]);
                    self.lines.consume(end);
                    if self.begun.ends_with(b"\n") {
                        let line = std::mem::take(&mut self.begun);
                        return Some(String::from_utf8(line).expect("it is text"));
                    }
                }
                Err(error) if PASSING.contains(&error.kind()) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// `TIME [DATABASE lua] ...` is called by a script.
fn is_of_a_client(line: &str) -> bool {
    !line.split(']').next().unwrap_or_default().ends_with(" lua")
}
