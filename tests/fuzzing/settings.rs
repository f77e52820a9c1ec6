//! Config files: TOML by a grammar, and what a start says of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use dq::context::ContextFactory;
use dq::environment::TokioClock;
use dq::store::memory::MemoryStore;
use dq::testing::seam::prepare;

use crate::draw::Draw;
use crate::grammar;
use crate::node::{Handles, Runs, paused};
use crate::target::Found;

const KEYS: [&str; 18] = [
    "store",
    "app",
    "lease",
    "heartbeat_interval",
    "call_timeout",
    "call_deadline",
    "poll_interval",
    "durability",
    "max_payload",
    "shutdown_grace",
    "node_concurrency",
    "concurrency",
    "timeout",
    "retry",
    "history_max",
    "lookahead",
    "dead_retention",
    "max_crashes",
];

/// The file of this process, in memory where the system has such a folder.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    folder.join(format!("dq-fuzz-{}.toml", std::process::id()))
});

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn value(draw: &Draw) -> String {
    match draw.below(9) {
        0 => draw.number().to_string(),
        1 => draw.pick(&["true", "nan", "1e400", "0x7f", "1979-05-27T07:32:00Z", "''''''", "[]", "{ a = 1 }"]).into(),
        2 => format!("[{}]", quoted(&draw.text())),
        3 => quoted(&draw.text()),
        4 => quoted(&grammar::retry(draw)),
        5 => quoted(draw.pick(&["none", "memory:x", "redis://h", "local", "wait(1, 1s)", "10MB"])),
        _ => quoted(&grammar::duration(draw)),
    }
}

fn file(draw: &Draw) -> String {
    let mut text = String::new();
    for _ in 0..draw.below(5) {
        match draw.below(8) {
            0 => text.push_str("[topic.t]\n"),
            1 => text.push_str(&format!("[topic.{}]\n", quoted(&draw.text()))),
            2 => text.push_str("[[topic]]\n"),
            3 => text.push_str(&format!("{} = {}\n", quoted(&draw.text()), value(draw))),
            _ => text.push_str(&format!("{} = {}\n", draw.pick(&KEYS), value(draw))),
        }
    }
    if draw.one_in(6) { draw.spoiled(&text) } else { text }
}

/// A node starts with a generated config file, or says what is wrong with it.
pub fn settings(draw: &Draw, found: &mut Found) {
    let text = file(draw);
    std::fs::write(&*FILE, &text).expect("there is room for a small file");
    let started = paused(async {
        let factory = ContextFactory::new("test").without_inventory().variables([("", ""); 0]).config_file(&*FILE);
        // A file may name a store that does not exist; that is not the question here.
        let store = Arc::new(MemoryStore::new(Arc::new(TokioClock::new())));
        let factory = factory.store(store).provide(Runs::default()).listener::<Handles>();
        prepare(factory).await.map(drop).map_err(|error| error.to_string())
    });
    std::fs::remove_file(&*FILE).expect("the file is ours");
    found.input(started.is_ok());
    if let Err(text) = started {
        assert!(!text.contains('\u{1b}') && text.len() < 100_000, "{} bytes", text.len());
    }
}
