//! What a server should be like to keep jobs, looked at once, at the first contact. What is missing is a warning: whoever
//! runs the server decides.

use std::sync::atomic::{AtomicBool, Ordering};

use redis::Value;

use super::queries::Queries;
use crate::store::Durability;

/// The oldest server whose commands the scripts use.
const OLDEST: (u32, u32) = (6, 2);

/// Whether the server was looked at.
#[derive(Debug, Default)]
pub(super) struct Check(AtomicBool);

impl Check {
    /// Looks at the server, the first time it is called, and logs what should be changed.
    pub(super) async fn once(&self, queries: &Queries, url: &str, durability: Durability) {
        if self.0.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut cmd = redis::cmd("INFO");
        cmd.arg("everything");
        // A user may lack the permission to ask; then nothing is said.
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

/// What `INFO` says that should be changed.
fn warnings(info: &str, durability: Durability) -> Vec<String> {
    let field = |name: &str| {
        info.lines().find_map(|connection| connection.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    let mut warnings = Vec::new();
    if let Some(version) = field("redis_version").filter(|version| is_too_old(version)) {
        warnings.push(format!("the server is Redis {version}; dq needs 6.2 or later, and its steps will fail"));
    }
    if let Some(policy) = field("maxmemory_policy").filter(|policy| *policy != "noeviction") {
        warnings.push(format!(
            "`maxmemory-policy` is `{policy}`: when memory is full the server removes jobs; set `noeviction`"
        ));
    }
    let saves = field("rdb_last_save_time").is_some() && field("rdb_bgsave_in_progress").is_some();
    if field("aof_enabled") == Some("0") && saves {
        warnings.push(
            "`appendonly` is off: a restart of the server loses what came after its last snapshot, or all".into(),
        );
    }
    if let Durability::Wait { replicas, .. } = durability {
        let connected = info.lines().filter(|connection| is_connected_replica(connection)).count();
        if connected < replicas as usize {
            warnings.push(format!(
                "`durability` waits for {replicas} replicas and {connected} are connected: adds will end as unknown until \
                 there are as many"
            ));
        }
    }
    warnings
}

/// `slave0:ip=127.0.0.1,port=6380,state=online,..`
fn is_connected_replica(connection: &str) -> bool {
    let number = connection.strip_prefix("slave").and_then(|rest| rest.split_once(':'));
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
    fn a_server_as_it_should_be_is_not_warned_about() {
        assert_eq!(local(GOOD), [""; 0]);
    }

    #[test]
    fn eviction_missing_persistence_and_an_old_version_are_warned_about() {
        let said = |from: &str, to: &str| local(&GOOD.replace(from, to)).join("\n");
        assert!(said("noeviction", "allkeys-lru").contains("`maxmemory-policy` is `allkeys-lru`"));
        assert!(said("aof_enabled:1", "aof_enabled:0").contains("`appendonly` is off"));
        assert!(said("7.0.15", "6.0.16").contains("the server is Redis 6.0.16"));
        assert_eq!(said("7.0.15", "6.2.5"), "");
    }

    #[test]
    fn replicas_that_are_not_there_are_warned_about() {
        let durability = Durability::Wait { replicas: 2, timeout: std::time::Duration::from_secs(1) };
        let replica =
            |n: u32, state: &str| format!("slave{n}:ip=127.0.0.1,port=638{n},state={state},offset=1,lag=0\r\n");
        let two = format!("{GOOD}connected_slaves:2\r\nslave_expires_tracked_keys:0\r\n{}", replica(0, "online"));
        assert_eq!(warnings(&format!("{two}{}", replica(1, "online")), durability), [""; 0]);
        let said = warnings(&format!("{two}{}", replica(1, "wait_bgsave")), durability).join("\n");
        assert!(said.starts_with("`durability` waits for 2 replicas and 1 are connected"), "{said}");
    }
}
