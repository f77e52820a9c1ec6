//! The commands that clients send to a server, read with `MONITOR`.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::redis::{RedisServer, ask};

/// Errors of a read that only mean that nothing has arrived yet.
const NOTHING_YET: [ErrorKind; 3] = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];

/// A connection on which the server reports every command it executes.
#[derive(Debug)]
pub struct Monitor {
    lines: BufReader<TcpStream>,
    /// The part that was read of an incomplete line.
    partial: Vec<u8>,
}

impl Monitor {
    /// Starts reading: the server reports every command from now on.
    pub fn start(server: &RedisServer) -> Self {
        let mut stream = server.connect();
        assert_eq!(ask(&mut stream, &["MONITOR"]), "+OK");
        Self { lines: BufReader::new(stream), partial: Vec::new() }
    }

    /// Returns the commands of clients up to an `ECHO` of `end`, without the commands that scripts call.
    pub fn until(&mut self, end: &str) -> Vec<String> {
        let mut seen = self.all_until(end);
        seen.retain(|line| is_of_a_client(line));
        seen
    }

    /// Returns all commands up to an `ECHO` of `end`, those that scripts call included.
    pub fn all_until(&mut self, end: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let line = self.line(None).expect("the server is reachable");
            if line.contains("\"ECHO\"") && line.contains(end) {
                return seen;
            }
            seen.push(line);
        }
    }

    /// Returns the commands of clients once none has arrived for `time`.
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

    /// Returns the commands of clients that arrive within `time`.
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
            self.lines.get_ref().set_read_timeout(left).expect("the timeout is not zero");
            // A read is interrupted when this process is stopped and continued. `read_line` would start over with the full
            // timeout; this loop computes the remaining time again.
            match self.lines.fill_buf() {
                Ok([]) => panic!("the server closed the connection"),
                Ok(bytes) => {
                    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
                    self.partial.extend_from_slice(&bytes[..end]);
                    self.lines.consume(end);
                    if self.partial.ends_with(b"\n") {
                        let line = std::mem::take(&mut self.partial);
                        return Some(String::from_utf8(line).expect("a monitor line is UTF-8"));
                    }
                }
                Err(error) if NOTHING_YET.contains(&error.kind()) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Whether a client sent the command: a line `TIME [DATABASE lua] ...` is a call by a script.
fn is_of_a_client(line: &str) -> bool {
    !line.split(']').next().unwrap_or_default().ends_with(" lua")
}
