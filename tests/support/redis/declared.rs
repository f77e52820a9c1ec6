//! A proxy that makes of a server one that rejects undeclared keys, as serverless and some cluster-only servers do.
//!
//! It reads the requests of clients, and puts a line of its own in front of each script. That line replaces the table `redis` by one whose
//! `call` and `pcall` look for the keys of each command among KEYS, and end the script with an error if one is missing. Unlike a real server, it
//! does so in `pcall` too, where a script could hide the error. Channels are no keys. A client calls a script by the hash of its own text, and
//! the server knows the script by the hash of the altered one, so the proxy remembers both.

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, LazyLock, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::{JoinHandle, JoinSet};

use super::RedisServer;

/// What stands in front of each script. It ends without a line feed, so the lines of the script keep their numbers.
const CHECK: &str = include_str!("declared.lua");

/// A hash that no script has.
const UNKNOWN: &str = "0000000000000000000000000000000000000000";

/// One thread for all proxies of the process.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_io().build();
    runtime.expect("the system gives a thread")
});

/// A proxy in front of a server on this machine. Dropping the value closes its connections.
#[derive(Debug)]
pub struct DeclaredKeys {
    port: u16,
    task: JoinHandle<()>,
}

/// The hash of each script that clients sent → that of the altered one.
type Hashes = Mutex<HashMap<String, String>>;

impl DeclaredKeys {
    /// Starts a proxy in front of `server`.
    ///
    /// # Panics
    /// If no port is free.
    pub fn of(server: &RedisServer) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let (to, port) = (server.port(), listener.local_addr().expect("it is bound").port());
        let task = RUNTIME.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("this is a runtime");
            let (hashes, mut connections) = (Arc::<Hashes>::default(), JoinSet::new());
            while let Ok((client, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                connections.spawn(pass(client, to, Arc::clone(&hashes)));
            }
        });
        Self { port, task }
    }

    /// Returns the URL of the server behind the proxy.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }
}

impl Drop for DeclaredKeys {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Passes on what a client and the server send, until one of them closes the connection.
async fn pass(client: TcpStream, to: u16, hashes: Arc<Hashes>) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", to)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((from_client, mut to_client), (mut from_server, to_server)) = (client.into_split(), server.into_split());
    let (mut requests, mut altered) = (BufReader::with_capacity(1 << 16, from_client), BufWriter::new(to_server));
    let up = async {
        loop {
            let mut words = request(&mut requests).await?;
            alter(&mut words, &hashes);
            altered.write_all(format!("*{}\r\n", words.len()).as_bytes()).await?;
            for word in &words {
                altered.write_all(format!("${}\r\n", word.len()).as_bytes()).await?;
                altered.write_all(word).await?;
                altered.write_all(b"\r\n").await?;
            }
            if requests.buffer().is_empty() {
                altered.flush().await?;
            }
        }
    };
    tokio::select! {
        biased;
        ended = up => ended,
        copied = tokio::io::copy(&mut from_server, &mut to_client) => copied.map(drop),
    }
}

/// Reads a request: an array of texts.
async fn request(from: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    for _ in 0..number(from, '*').await? {
        let mut word = vec![0; number(from, '$').await? + 2];
        from.read_exact(&mut word).await?;
        word.truncate(word.len() - 2);
        words.push(word);
    }
    Ok(words)
}

/// Reads a line with a type and a number.
async fn number(from: &mut (impl AsyncBufReadExt + Unpin), kind: char) -> io::Result<usize> {
    let mut line = String::new();
    if from.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let number = line.strip_prefix(kind).and_then(|number| number.trim_end().parse().ok());
    number.ok_or_else(|| io::Error::other(format!("no request begins with {line:?}")))
}

/// Puts the altered script, or its hash, in the place of that of the client.
fn alter(words: &mut [Vec<u8>], hashes: &Hashes) {
    let is = |at: usize, name: &str| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let place = if is(0, "SCRIPT") && is(1, "LOAD") { 2 } else { 1 };
    let (is_text, is_hash) = (place == 2 || is(0, "EVAL"), is(0, "EVALSHA"));
    let Some(word) = words.get_mut(place).filter(|_| is_text || is_hash) else { return };
    let text = String::from_utf8_lossy(word);
    let mut hashes = hashes.lock().unwrap();
    if is_hash {
        *word = hashes.get(&*text).map_or(UNKNOWN, String::as_str).into();
        return;
    }
    let altered = format!("{}{text}", CHECK.replace('\n', " "));
    let hash_of = |text: &str| redis::Script::new(text).get_hash().to_owned();
    hashes.entry(hash_of(&text)).or_insert_with(|| hash_of(&altered));
    *word = altered.into_bytes();
}
