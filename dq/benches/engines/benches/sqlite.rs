//! SQLite: a log ahead of the database, synced at each commit. Its settings are in favour of it: a page cache that holds everything,
//! prepared statements, and a checkpoint only every 32 MiB.

use std::hint::black_box;
use std::path::Path;

use dq_bench::PAYLOAD;
use rusqlite::{Connection, params};

use crate::engine::{Claimed, Engine, Work};

pub(crate) struct Sqlite(Connection);

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 8192;
    PRAGMA cache_size = -524288;
    CREATE TABLE jobs (id TEXT PRIMARY KEY, due INTEGER NOT NULL, fence INTEGER, payload BLOB NOT NULL) WITHOUT ROWID;
    CREATE INDEX waiting ON jobs (due) WHERE fence IS NULL;";

impl Engine for Sqlite {
    const NAME: &'static str = "SQLite";

    fn open(folder: &Path) -> Self {
        let connection = Connection::open(folder.join("jobs.sqlite")).unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        let of = |pragma| connection.query_row(pragma, [], |row| row.get::<_, String>(0));
        assert_eq!(of("PRAGMA journal_mode").unwrap(), "wal");
        Self(connection)
    }

    fn transact(&mut self, work: &[Work], now: u64, most: usize, fence: u64) -> Claimed {
        let signed = |number: u64| i64::try_from(number).unwrap();
        let all = self.0.transaction().unwrap();
        let mut claimed = Claimed { ids: Vec::new(), fence };
        {
            let mut add = all.prepare_cached("INSERT INTO jobs (id, due, payload) VALUES (?1, ?2, ?3)").unwrap();
            let mut ack = all.prepare_cached("DELETE FROM jobs WHERE id = ?1 AND fence = ?2").unwrap();
            for work in work {
                match work {
                    Work::Add(jobs) => jobs.iter().for_each(|(id, due)| {
                        add.execute(params![id, signed(*due), PAYLOAD.as_bytes()]).unwrap();
                    }),
                    Work::Ack(ids, fence) => ids.iter().for_each(|id| {
                        assert_eq!(ack.execute(params![id, signed(*fence)]).unwrap(), 1);
                    }),
                }
            }
            if most > 0 {
                let due = "SELECT id FROM jobs WHERE fence IS NULL AND due <= ?2 ORDER BY due LIMIT ?3";
                let claim = format!("UPDATE jobs SET fence = ?1 WHERE id IN ({due}) RETURNING id, payload");
                let mut claim = all.prepare_cached(&claim).unwrap();
                let mut rows = claim.query(params![signed(fence), signed(now), signed(most as u64)]).unwrap();
                while let Some(row) = rows.next().unwrap() {
                    claimed.ids.push(row.get(0).unwrap());
                    black_box(row.get::<_, Vec<u8>>(1).unwrap());
                }
            }
        }
        all.commit().unwrap();
        claimed
    }
}
