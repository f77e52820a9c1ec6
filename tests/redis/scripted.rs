//! A fake server: it greets like Redis and then behaves as the test says.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the server behaves.
#[derive(Debug, Clone, Copy)]
pub enum Behaviour {
    /// Answers every script with this line.
    Answers(&'static str),
    /// Answers this many scripts with *again*, as if nodes came and went, and every later one as an add of one job.
    Again(u64),
    /// Answers that a key has a wrong type, and to the script that looks for it that there is none.
    WrongTypeIsGone,
    /// Closes the connection when it receives a script.
    Closes,
    /// Closes every connection without a word.
    ClosesAtOnce,
    /// Never answers a script, and keeps the connection open.
    NeverAnswers,
    /// Answers every script with 1; confirms every subscription and then closes its connection.
    ClosesSubscriptions,
    /// Confirms the subscriptions of its first connection and closes it, is busy when the second one subscribes, and
    /// confirms those of later ones.
    BusyAtResubscription,
}

/// A fake server, which lives as long as the test's process.
pub struct Started {
    pub url: String,
    /// How many connections it has had so far.
    pub connections: Arc<AtomicU64>,
    /// How many scripts it has received so far.
    pub scripts: Arc<AtomicU64>,
}

pub fn start(behaviour: Behaviour) -> Started {
    let (connections, scripts) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let (count, received) = (Arc::clone(&connections), Arc::clone(&scripts));
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let number = count.fetch_add(1, Ordering::SeqCst);
            let received = Arc::clone(&received);
            std::thread::spawn(move || serve(stream, number, behaviour, &received));
        }
    });
    Started { url: format!("redis://127.0.0.1:{port}/"), connections, scripts }
}

fn serve(mut stream: TcpStream, number: u64, behaviour: Behaviour, scripts: &AtomicU64) -> Option<()> {
    if matches!(behaviour, Behaviour::ClosesAtOnce) {
        return None;
    }
    let mut requests = BufReader::new(stream.try_clone().ok()?);
    loop {
        let words = request(&mut requests)?;
        // A producer enters its topic into the directory.
        if words.iter().any(|word| word.ends_with("}:topics")) {
            stream.write_all(b":1\r\n").ok()?;
            continue;
        }
        let is_script = ["EVALSHA", "EVAL"].contains(&words.first()?.as_str());
        let before = scripts.fetch_add(u64::from(is_script), Ordering::SeqCst);
        let answer = match (words.first()?.as_str(), behaviour) {
            ("HELLO", _) => "%1\r\n+server\r\n+redis\r\n".to_owned(),
            ("EVALSHA" | "EVAL", Behaviour::Answers(line)) => format!("{line}\r\n"),
            ("EVALSHA" | "EVAL", Behaviour::Again(times)) if before < times => {
                "*2\r\n$5\r\nagain\r\n*1\r\n$4\r\nnode\r\n".to_owned()
            }
            ("EVALSHA" | "EVAL", Behaviour::Again(_)) => "$2\r\naA\r\n".to_owned(),
            ("EVALSHA", Behaviour::WrongTypeIsGone) => {
                "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n".to_owned()
            }
            ("EVAL", Behaviour::WrongTypeIsGone) => ":1\r\n".to_owned(),
            ("EVALSHA" | "EVAL", Behaviour::Closes) => return None,
            ("EVALSHA" | "EVAL", Behaviour::NeverAnswers) => continue,
            ("EVALSHA" | "EVAL", Behaviour::ClosesSubscriptions) => ":1\r\n".to_owned(),
            ("SUBSCRIBE", Behaviour::BusyAtResubscription) if number == 1 => "-BUSY a script is running\r\n".to_owned(),
            ("SUBSCRIBE", Behaviour::ClosesSubscriptions | Behaviour::BusyAtResubscription) => {
                let confirmed =
                    words[1..].iter().map(|name| format!(">3\r\n+subscribe\r\n${}\r\n{name}\r\n:1\r\n", name.len()));
                stream.write_all(confirmed.collect::<String>().as_bytes()).ok()?;
                if number > 1 && matches!(behaviour, Behaviour::BusyAtResubscription) {
                    continue;
                }
                return None;
            }
            _ => "+OK\r\n".to_owned(),
        };
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

fn request(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let count = length(reader, '*')?;
    (0..count)
        .map(|_| {
            let mut text = vec![0; length(reader, '$')? + 2];
            reader.read_exact(&mut text).ok()?;
            Some(String::from_utf8_lossy(&text[..text.len() - 2]).into_owned())
        })
        .collect()
}

fn length(reader: &mut impl BufRead, kind: char) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim_end().strip_prefix(kind)?.parse().ok()
}
