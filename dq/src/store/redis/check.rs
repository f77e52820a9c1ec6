//! Checks once, at first contact, whether the settings of the server keep jobs safe. A bad setting is a warning in the
//! log, because the operator decides.

use std::sync::atomic::{AtomicBool, Ordering};

use redis::Value;

use super::queries::Queries;
use crate::store::Durability;

/// The oldest server whose commands the scripts use.
const OLDEST: (u32, u32) = (6, 2);

/// Remembers whether the server was checked.
#[derive(Debug, Default)]
pub(super) struct Check(AtomicBool);

impl Check {
    /// Checks the server the first time it is called, and logs a warning for each bad setting.
    pub(super) async fn once(&self, queries: &Queries, url: &str, durability: Durability) {
        if self.0.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut cmd = redis::cmd("INFO");
        cmd.arg("everything");
        // The user may lack the permission for INFO; then there is no check.
        let Ok(answer) = queries.command("check", &cmd).await else { return };
        for warning in warnings(&text(answer), durability) {
            tracing::warn!(store = url, "{warning}");
        }
    }
}

fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::VerbatimString { text, .. } | Value::SimpleString(text) => text,
        _ => String::new(),
    }
}

/// The warnings about a server with this answer to `INFO`.
fn warnings(info: &str, durability: Durability) -> Vec<String> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let mut warnings = Vec::new();
    if let Some(version) = field("redis_version").filter(|version| is_too_old(version)) {
        warnings.push(format!(
            "the server is Redis {version}, and dq needs 6.2 or later: upgrade it, or every request will fail"
        ));
    }
    if let Some(policy) = field("maxmemory_policy").filter(|policy| *policy != "noeviction") {
        warnings.push(format!(
            "`maxmemory-policy` is `{policy}`, so the server removes jobs when its memory is full: set it to `noeviction`"
        ));
    }
    let saves = field("rdb_last_save_time").is_some() && field("rdb_bgsave_in_progress").is_some();
    if field("aof_enabled") == Some("0") && saves {
        warnings.push(
            "`appendonly` is off, so a restart of the server loses jobs since its last snapshot, or all of them: set it to `yes`".into(),
        );
    }
    if let Durability::Wait { replicas, .. } = durability {
        let connected = info.lines().filter(|line| is_connected_replica(line)).count();
        if connected < replicas as usize {
            warnings.push(format!(
                "`durability` waits for {replicas} of the server's replicas, which has {connected}: connect more, or adds will fail with \
                 `Unknown`"
            ));
        }
    }
    warnings
}

/// Whether this line of `INFO` is a replica that is connected: `slave0:ip=127.0.0.1,port=6380,state=online,..`
fn is_connected_replica(line: &str) -> bool {
    let number = line.strip_prefix("slave").and_then(|rest| rest.split_once(':'));
    number.is_some_and(|(number, replica)| number.parse::<u32>().is_ok() && replica.contains("state=online"))
}

fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default()) < OLDEST
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\nrdb_last_save_time:1\r\nrdb_bgsave_in_progress:0\r\n";

    fn local(info: &str) -> Vec<String> {
        warnings(info, Durability::Local)
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
        assert_eq!(warnings(&format!("{two}{}", replica(1, "online")), durability), [""; 0]);
        let said = warnings(&format!("{two}{}", replica(1, "wait_bgsave")), durability).join("\n");
        assert!(said.starts_with("`durability` waits for 2 of the server's replicas, which has 1"), "{said}");
    }
}
