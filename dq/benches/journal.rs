//! What the bare journal costs: N callers append a frame of 120 bytes each, then one of them commits; beside it a loop that appends
//! the same bytes to a file and syncs them. `cargo bench -p dq --bench journal`
//!
//! The files are below `target`, so that is the disk that is measured.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dq::store::file::disk::Directory;
use dq::store::file::journal::{Frame, Holder, Journal, Options, Position};
use dq_bench::{Arguments, Bench, Cost, Meter, Side};

const FRAME: [u8; 120] = [0x5A; 120];
/// What the journal adds to a frame; the loop writes as much.
const FRAME_HEADER: usize = 13;
const CALLERS: [usize; 3] = [1, 64, 1_024];

fn main() {
    let arguments = Arguments::read();
    let mut bench = Bench::start("journal", arguments, CALLERS.len() * 2 + 1);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-journal");
    for round in bench.rounds() {
        for callers in CALLERS {
            let commits = bench.arguments.scaled(1, 4) * if callers < 1_000 { 500 } else { 100 };
            let mut sides = [Side::Bare, Side::Dq];
            sides.rotate_left(round % 2);
            for side in sides {
                let what = format!("{callers} callers");
                bench.step(format!("{what}, {side:?}"));
                let cost = match side {
                    Side::Bare => bare(&folder, callers, commits),
                    Side::Dq => journal(&folder, callers, commits),
                };
                bench.record_cost(side, &what, &cost);
            }
        }
        bench.step("reading");
        let frames = bench.arguments.scaled(200_000, 1_000_000);
        let cost = reading(&folder, frames);
        bench.record_cost(Side::Dq, "reading", &cost);
    }
    bench.note("A caller is one append; all of them wait for one commit. The loop writes to a file that grows.");
    bench.finish();
    fs::remove_dir_all(folder).unwrap();
}

fn empty(folder: &Path) -> PathBuf {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    folder.to_path_buf()
}

fn bare(folder: &Path, callers: usize, commits: usize) -> Cost {
    let mut file = File::create(empty(folder).join("bare")).unwrap();
    let mut batch = Vec::new();
    let meter = Meter::start();
    for _ in 0..commits {
        batch.clear();
        for _ in 0..callers {
            batch.extend_from_slice(&[0; FRAME_HEADER]);
            batch.extend_from_slice(&FRAME);
        }
        file.write_all(&batch).unwrap();
        file.sync_data().unwrap();
    }
    meter.end(callers * commits)
}

fn open(folder: &Path, apply: impl FnMut(Position, Frame<'_>) -> Result<(), std::io::Error>) -> Journal {
    let options = Options::new(1, Holder::default(), 1);
    Journal::open(Arc::new(Directory::open(folder).unwrap()), &options, apply).unwrap().0
}

fn journal(folder: &Path, callers: usize, commits: usize) -> Cost {
    let journal = open(&empty(folder), |_, _| Ok(()));
    let topic = journal.topic("orders").unwrap();
    let meter = Meter::start();
    for _ in 0..commits {
        for _ in 0..callers {
            journal.append(topic, 1, &FRAME).unwrap();
        }
        journal.commit().unwrap();
    }
    meter.end(callers * commits)
}

/// Opens a journal of this many frames.
fn reading(folder: &Path, frames: usize) -> Cost {
    let journal = open(&empty(folder), |_, _| Ok(()));
    let topic = journal.topic("orders").unwrap();
    for number in 0..frames {
        journal.append(topic, 1, &FRAME).unwrap();
        if number % 10_000 == 0 {
            journal.commit().unwrap();
        }
    }
    journal.seal().unwrap();
    drop(journal);
    let (meter, mut read) = (Meter::start(), 0);
    drop(open(folder, |_, _| {
        read += 1;
        Ok(())
    }));
    assert_eq!(read, frames);
    meter.end(frames)
}
