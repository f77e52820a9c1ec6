//! What a read costs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use dq_tests::redis::RedisServer;

use crate::counting::CountingStore;

/// The most commands of a store that a read takes.
pub(crate) const MAX_COMMANDS: u64 = 20;

/// Counts commands of the store and the bytes of their answers.
pub(crate) struct Meter {
    source: Source,
    /// The most commands and bytes of each kind of read.
    worst: Mutex<BTreeMap<String, (u64, u64)>>,
}

impl From<Source> for Meter {
    fn from(source: Source) -> Self {
        Self { source, worst: Mutex::default() }
    }
}

/// What counts.
pub(crate) enum Source {
    /// The requests that a store in memory gets, and the bytes of the records that it answers.
    Requests(Arc<CountingStore>),
    /// What the server says of itself. A script counts as one command; a listing of names is one more. A read without a script is
    /// one of statistics, by HMGET, or of a history, by HGET.
    Server(RedisServer),
}

impl Source {
    fn begin(&self) {
        match self {
            Self::Requests(store) => _ = store.take(),
            Self::Server(server) => _ = server.command(&["CONFIG", "RESETSTAT"]),
        }
    }

    fn end(&self) -> (u64, u64) {
        match self {
            Self::Requests(store) => store.take(),
            Self::Server(server) => {
                // Before the others, whose answers count too.
                let stats = server.command(&["INFO", "stats"]);
                let bytes = stats.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:"));
                let calls = server.calls();
                let of = |name: &str| calls.get(name).copied().unwrap_or_default();
                let scripts = of("evalsha") + 2 * of("eval");
                (if scripts == 0 { of("hmget") + of("hget") } else { scripts }, bytes.unwrap().trim().parse().unwrap())
            }
        }
    }
}

impl Meter {
    /// Makes a read, and checks that it takes no more commands than these, and no more than [`MAX_COMMANDS`], and answers at most as
    /// many bytes.
    pub(crate) async fn within<T>(&self, name: &str, most: (u64, u64), read: impl Future<Output = T>) -> T {
        self.source.begin();
        let found = read.await;
        let (commands, bytes) = self.source.end();
        let mut worst = self.worst.lock().unwrap();
        let known = worst.entry(name.to_owned()).or_default();
        *known = (known.0.max(commands), known.1.max(bytes));
        drop(worst);
        assert!((1..=most.0.min(MAX_COMMANDS)).contains(&commands), "{name}: {commands} commands");
        assert!(bytes <= most.1, "{name}: {bytes} bytes");
        // In memory only the bytes of records count, and not every read has some.
        assert!(bytes > 5 || matches!(self.source, Source::Requests(_)), "{name}: {bytes} bytes");
        found
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        for (name, (commands, bytes)) in self.worst.get_mut().unwrap() {
            println!("{name}: {commands} commands, {bytes} bytes");
        }
    }
}
