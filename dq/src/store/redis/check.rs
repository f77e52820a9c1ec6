//! Checks once, at first contact, whether the settings of each server keep jobs safe. A bad setting is a warning in the
//! log, because the operator decides.

use std::sync::atomic::Ordering;

use redis::InfoDict;

use super::RedisStore;
use super::reply::malformed;
use crate::store::{Danger, Durability, FindingCode, MemoryUse, Store, StoreError};

/// The oldest server whose commands the scripts use.
const OLDEST: (u32, u32) = (6, 2);

impl RedisStore {
    /// Checks the server the first time it is called, and logs a warning for each bad setting.
    pub(super) async fn check_once(&self) {
        if self.is_checked.swap(true, Ordering::Relaxed) {
            return;
        }
        // The user may lack the permission for INFO; then there is no check.
        let Ok(dangers) = self.warnings().await else { return };
        for (Danger { text, .. }, advice) in dangers {
            tracing::warn!(store = self.url(), "{text}: {advice}");
        }
    }

    /// What the settings and the memory of the server mean for the jobs, each with what the log says to do.
    pub(super) async fn warnings(&self) -> Result<Vec<Warning>, StoreError> {
        let mut cmd = redis::cmd("INFO");
        cmd.arg("everything");
        let mut found = Vec::new();
        for server in self.shards.all("check").await? {
            let info = redis::from_redis_value(server.command("check", &cmd).await?);
            let info: InfoDict = info.map_err(|_| malformed("check", "`INFO` is not UTF-8"))?;
            // What is wrong with several servers is named once.
            for warning in warnings_in(&info, self.durability) {
                if !found.contains(&warning) {
                    found.push(warning);
                }
            }
        }
        Ok(found)
    }
}

/// A danger, and what the log says to do.
pub(super) type Warning = (Danger, &'static str);

/// What is dangerous on a server with this answer to `INFO`.
fn warnings_in(info: &InfoDict, durability: Durability) -> Vec<Warning> {
    let field = |name: &str| info.get::<String>(name);
    let mut warnings = Vec::new();
    let mut push = |code, text, advice| warnings.push((Danger { code, text }, advice));
    if let Some(version) = field("redis_version").filter(|version| is_too_old(version)) {
        let text = format!("the server is Redis {version}, and dq needs 6.2 or later");
        push(FindingCode::OldServer, text, "upgrade it, or every request will fail");
    }
    if let Some(policy) = field("maxmemory_policy").filter(|policy| policy != "noeviction") {
        let text = format!("`maxmemory-policy` is `{policy}`, so the server removes jobs when its memory is full");
        push(FindingCode::EvictsJobs, text, "set it to `noeviction`");
    }
    let saves = field("rdb_last_save_time").is_some() && field("rdb_bgsave_in_progress").is_some();
    if field("aof_enabled").as_deref() == Some("0") && saves {
        let text =
            "`appendonly` is off, so a restart of the server loses the jobs after its last snapshot, or all of them";
        push(FindingCode::NotPersistent, text.into(), "set it to `yes`");
    }
    if let Durability::Wait { replicas, .. } = durability {
        let connected = info
            .keys()
            .filter(|name| is_replica(name) && field(name).is_some_and(|at| at.contains("state=online")))
            .count();
        if connected < replicas as usize {
            let text = format!("`durability` waits for {replicas} of the server's replicas, which has {connected}");
            push(FindingCode::TooFewReplicas, text, "connect more, or adds will fail with `Unknown`");
        }
    }
    let number = |name: &str| info.get::<u64>(name).unwrap_or_default();
    // The server does not count these buffers towards its limit.
    let used = number("used_memory").saturating_sub(number("mem_not_counted_for_evict"));
    warnings.extend(about_memory(used, number("maxmemory")));
    warnings
}

/// What it means that so many bytes of so many are in use; a limit of zero is none.
fn about_memory(used: u64, most: u64) -> Option<Warning> {
    let danger = MemoryUse { bytes: used, limit: Some(most) }.danger("the server uses", "its `maxmemory`")?;
    let advice = match danger.code {
        FindingCode::MemoryFull => "raise it, or the server refuses adds",
        _ => "raise it before adds are refused",
    };
    Some((danger, advice))
}

/// Whether this field of `INFO` is a replica, as in `slave0:ip=127.0.0.1,port=6380,state=online,..`
fn is_replica(name: &str) -> bool {
    name.strip_prefix("slave").is_some_and(|number| number.parse::<u32>().is_ok())
}

fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default()) < OLDEST
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\nrdb_last_save_time:1\r\nrdb_bgsave_in_progress:0\r\n";

    fn texts(info: &str, durability: Durability) -> Vec<String> {
        let warnings = warnings_in(&InfoDict::new(info), durability).into_iter();
        warnings.map(|(danger, advice)| format!("{}: {advice}", danger.text)).collect()
    }

    fn local(info: &str) -> Vec<String> {
        texts(info, Durability::Local)
    }

    #[test]
    fn a_good_server_gives_no_warnings() {
        assert_eq!(local(GOOD), [""; 0]);
    }

    #[test]
    fn eviction_missing_persistence_and_an_old_version_give_warnings() {
        let said = |from: &str, to: &str| local(&GOOD.replace(from, to)).join("\n");
        assert!(said("noeviction", "allkeys-lru").contains("`maxmemory-policy` is `allkeys-lru`"));
        assert!(said("aof_enabled:1", "aof_enabled:0").contains("`appendonly` is off"));
        assert!(said("7.0.15", "6.0.16").contains("the server is Redis 6.0.16"));
        assert_eq!(said("7.0.15", "6.2.5"), "");
    }

    #[test]
    fn missing_replicas_give_a_warning() {
        let durability = Durability::Wait { replicas: 2, timeout: std::time::Duration::from_secs(1) };
        let replica =
            |n: u32, state: &str| format!("slave{n}:ip=127.0.0.1,port=638{n},state={state},offset=1,lag=0\r\n");
        let two = format!("{GOOD}connected_slaves:2\r\nslave_expires_tracked_keys:0\r\n{}", replica(0, "online"));
        assert_eq!(texts(&format!("{two}{}", replica(1, "online")), durability), [""; 0]);
        let said = texts(&format!("{two}{}", replica(1, "wait_bgsave")), durability).join("\n");
        assert!(said.starts_with("`durability` waits for 2 of the server's replicas, which has 1"), "{said}");
    }

    #[test]
    fn memory_is_nearly_full_from_80_percent_on_and_full_from_95() {
        let kind = |used: u64| {
            let info = format!("{GOOD}used_memory:{used}\r\nmem_not_counted_for_evict:5\r\nmaxmemory:1000\r\n");
            warnings_in(&InfoDict::new(&info), Durability::Local).pop().map(|(danger, _)| danger.code)
        };
        assert_eq!(
            [804, 805, 954].map(kind),
            [None, Some(FindingCode::MemoryNearlyFull), Some(FindingCode::MemoryNearlyFull)]
        );
        assert_eq!(kind(955), Some(FindingCode::MemoryFull));
        assert_eq!(local(&format!("{GOOD}used_memory:955\r\nmaxmemory:0\r\n")), [""; 0], "no limit");
    }
}
