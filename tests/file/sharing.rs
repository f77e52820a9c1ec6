//! Who uses a directory: one process at a time, and all of it.

use dq::context::ContextFactory;
use dq::store::file::check;
use dq_tests::file::Folder;
use dq_tests::{Count, NodeProcess, RunLog};

const NODE: &str = env!("CARGO_BIN_EXE_node");

fn factory(folder: &Folder) -> ContextFactory {
    ContextFactory::new("shop").without_inventory().without_listeners().variables([("", ""); 0]).store(folder.url())
}

#[tokio::test]
async fn two_factories_of_one_process_share_a_directory() {
    let folder = Folder::unmade();
    let (one, other) = (factory(&folder).start().await.unwrap(), factory(&folder).start().await.unwrap());
    one.provider().add(Count { n: 7 }).await.unwrap();
    assert!(other.provider().get::<Count>(7).await.unwrap().is_some());
    one.shutdown(std::time::Duration::ZERO).await;
    other.provider().add(Count { n: 8 }).await.unwrap();
    other.shutdown(std::time::Duration::ZERO).await;
    let again = factory(&folder).start().await.unwrap();
    assert_eq!(again.provider().counts::<Count>().await.unwrap().delayed, 2);
}

#[tokio::test]
async fn a_second_process_is_told_who_uses_the_directory_and_the_lock_of_a_dead_one_is_no_obstacle() {
    let folder = Folder::unmade();
    let log = RunLog::default();
    let process = NodeProcess::start(NODE, &folder.url(), &[], 0, "first", &log).await;
    let refused = factory(&folder).start().await.unwrap_err().to_string();
    let path = folder.path().canonicalize().unwrap();
    let expected = format!("{} is in use by process {} on ", path.display(), process.pid());
    assert!(refused.starts_with("cannot start, 1 problem:") && refused.contains(&expected), "{refused}");
    assert!(refused.contains(" since 20"), "{refused}");
    assert!(refused.contains("stop that process, or use another directory"), "{refused}");
    let checked = check(folder.path()).unwrap();
    assert!(!checked.is_sealed, "it is being written");
    process.kill().await;
    let lock = std::fs::read_to_string(folder.path().join("LOCK")).unwrap();
    assert!(lock.starts_with("pid "), "{lock}");
    let dq = factory(&folder).start().await.unwrap();
    dq.provider().add(Count { n: 1 }).await.unwrap();
    dq.shutdown(std::time::Duration::ZERO).await;
    let checked = check(folder.path()).unwrap();
    assert_eq!(checked.topics[0].counts.delayed, 1);
}

#[tokio::test]
async fn a_process_of_another_container_with_the_same_process_id_is_told_apart() {
    let folder = Folder::unmade();
    std::fs::create_dir(folder.path()).unwrap();
    let lock = std::fs::File::create(folder.path().join("LOCK")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let pid = std::process::id();
    std::fs::write(folder.path().join("LOCK"), format!("pid {pid}\nsince 0\nhost web-2\nprocess 7\n")).unwrap();
    let began = std::time::Instant::now();
    let refused = factory(&folder).start().await.unwrap_err().to_string();
    assert!(refused.contains(&format!("is in use by process {pid} on web-2: stop that process")), "{refused}");
    assert!(began.elapsed().as_secs() < 9, "a process waits ten seconds for the end of a store of its own");
}
