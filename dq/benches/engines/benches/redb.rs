//! redb, whose commits are durable unless told otherwise: a table of records, one of due times, and one of the jobs that run.

use std::hint::black_box;
use std::path::Path;

use dq_bench::PAYLOAD;
use redb::{Database, ReadableTable, TableDefinition};

use crate::engine::{Claimed, Engine, Work};

const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");
const WAITING: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("waiting");
const RUNNING: TableDefinition<'_, &str, u64> = TableDefinition::new("running");

pub(crate) struct Redb(Database);

impl Engine for Redb {
    const NAME: &'static str = "redb";

    fn open(folder: &Path) -> Self {
        Self(Database::builder().set_cache_size(512 << 20).create(folder.join("jobs.redb")).unwrap())
    }

    fn transact(&mut self, work: &[Work], now: u64, most: usize, fence: u64) -> Claimed {
        let all = self.0.begin_write().unwrap();
        let mut claimed = Claimed { ids: Vec::new(), fence };
        {
            let mut records = all.open_table(RECORDS).unwrap();
            let mut waiting = all.open_table(WAITING).unwrap();
            let mut running = all.open_table(RUNNING).unwrap();
            for work in work {
                match work {
                    Work::Add(jobs) => {
                        for (id, due) in jobs {
                            assert!(records.insert(id.as_str(), PAYLOAD.as_bytes()).unwrap().is_none());
                            waiting.insert((*due, id.as_str()), ()).unwrap();
                        }
                    }
                    Work::Ack(ids, fence) => {
                        for id in ids {
                            assert_eq!(running.remove(id.as_str()).unwrap().unwrap().value(), *fence);
                            records.remove(id.as_str()).unwrap();
                        }
                    }
                }
            }
            let mut due = Vec::new();
            for row in waiting.range(..(now + 1, "")).unwrap().take(most) {
                let (at, id) = row.as_ref().map(|(key, _)| key.value()).unwrap();
                due.push((at, id.to_owned()));
            }
            for (at, id) in due {
                waiting.remove((at, id.as_str())).unwrap();
                running.insert(id.as_str(), fence).unwrap();
                black_box(records.get(id.as_str()).unwrap().unwrap().value().to_vec());
                claimed.ids.push(id);
            }
        }
        all.commit().unwrap();
        claimed
    }
}
