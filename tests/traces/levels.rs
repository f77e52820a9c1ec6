//! The levels of the log, as `docs/guide/logs.md` has them.

use tracing::Level;

use dq::listener::RetryDelay;
use dq::prelude::*;
use dq::testing::Harness;

use crate::recorder::{Traces, subscribe};
use crate::scripted_listener::{HOUR, MINUTE, SECOND, Script, TestJob, default_settings, start, test_job};

/// How many jobs fail in a test that counts lines.
const JOBS: usize = 20;

/// The lines with this text.
fn with<'a>(lines: &'a [String], text: &str) -> Vec<&'a String> {
    lines.iter().filter(|line| line.contains(text)).collect()
}

/// Forgets the lines of the start.
async fn begin(script: &Script, traces: &Traces, retry: &'static str) -> Harness {
    let dq = script.start(|topic| topic.retry(retry)).await;
    for level in [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG] {
        traces.events(level);
    }
    dq
}

#[tokio::test(start_paused = true)]
async fn ordinary_retries_are_a_line_each_at_info_and_warn_only_from_the_last_but_one() {
    let (traces, _guard) = subscribe();
    let dq = begin(&Script::fails("no"), &traces, "1m x 3").await;
    for job in dq.provider().add_many((0..JOBS).map(test_job)).await.unwrap() {
        job.unwrap();
    }
    dq.advance(MINUTE + SECOND).await;
    let info = traces.events(Level::INFO);
    assert_eq!(
        (with(&info, "the handler failed, and is retried").len(), info.len()),
        (2 * JOBS, 2 * JOBS),
        "{info:#?}"
    );
    assert_eq!((traces.events(Level::WARN), traces.events(Level::ERROR)), (vec![], vec![]));
    dq.advance(MINUTE).await;
    let warn = traces.events(Level::WARN);
    assert_eq!((with(&warn, "one attempt is left").len(), warn.len()), (JOBS, JOBS), "{warn:#?}");
    dq.advance(MINUTE).await;
    let (warn, error) = (traces.events(Level::WARN), traces.events(Level::ERROR));
    assert_eq!((with(&warn, "no attempt is left").len(), warn.len()), (JOBS, JOBS), "{warn:#?}");
    assert_eq!((with(&error, "the job is DEAD").len(), error.len()), (JOBS, JOBS), "{error:#?}");
    assert!(traces.events(Level::INFO).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_succeeds_at_its_second_attempt_leaves_no_warning() {
    let (traces, _guard) = subscribe();
    let script = Script::new(|job, channel| async move {
        if job.attempt() == 0 { Err("not yet".into()) } else { Ok(channel.ack()) }
    });
    let dq = begin(&script, &traces, "1m x 3").await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(HOUR).await;
    assert_eq!(traces.events(Level::INFO).len(), 1);
    assert_eq!((traces.events(Level::WARN), traces.events(Level::ERROR)), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_failure_says_which_attempt_of_how_many_when_the_next_is_and_the_fence() {
    let (traces, _guard) = subscribe();
    let dq = begin(&Script::fails("no"), &traces, "1m, 5m, 10m").await; // the script has an `on_exhausted`
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(6 * MINUTE + SECOND).await;
    let (info, warn) = (traces.events(Level::INFO), traces.events(Level::WARN));
    for (line, says) in [
        (&info[0], "job.id=a attempt=1 of=4 retry_in=1m fence="),
        (&info[1], "job.id=a attempt=2 of=4 retry_in=5m fence="),
        (&warn[0], "job.id=a attempt=3 of=4 retry_in=10m fence="),
    ] {
        assert!(
            line.contains(says) && line.contains("topic=work") && line.contains("cause=error error=\"no\""),
            "{line}"
        );
    }
    let lines = traces.lines();
    assert_eq!(with(&lines, "dq.run topic=work job.id=a").len(), 3, "the span names the topic alike: {lines:#?}");
    assert!(with(&lines, "test:work").is_empty(), "{lines:#?}");
    dq.advance(HOUR).await;
    let error = traces.events(Level::ERROR);
    assert_eq!(error.len(), 1, "{error:#?}");
    assert!(error[0].contains("the job is DEAD topic=work job.id=a attempts=4 fence="), "{error:#?}");
    assert!(error[0].contains("cause=error error=\"no\""), "{error:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_delay_in_code_has_no_number_of_attempts_and_is_a_line_at_info() {
    let (traces, _guard) = subscribe();
    let script = Script::fails("no").retry_delay(|_, _| RetryDelay::After(MINUTE));
    let dq = begin(&script, &traces, "1m").await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    let info = traces.events(Level::INFO);
    assert!(info.len() == 1 && info[0].contains("attempt=1 retry_in=1m fence="), "{info:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_one_line() {
    let (traces, _guard) = subscribe();
    let script = Script::hangs();
    let dq = script.start(|topic| topic.retry("1h x 5").timeout("10s")).await;
    traces.events(Level::INFO);
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(MINUTE).await;
    let info = traces.events(Level::INFO);
    assert!(
        info.len() == 1 && info[0].contains("cause=timeout error=\"the handler did not return within 10s\""),
        "{info:#?}"
    );
    assert!(traces.events(Level::WARN).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_parked_job_that_the_default_drops_is_counted_and_a_warning_with_its_id() {
    #[delay_listener(register = false)]
    struct Plain {}

    impl DelayListener for Plain {
        type Job = TestJob;

        async fn on_due(&self, _job: Job<TestJob>, channel: Channel) -> Result<Decided, JobError> {
            Ok(channel.park())
        }
    }
    let (traces, _guard) = subscribe();
    let dq = start(|factory| factory.listener::<Plain>().topic("work", |topic| topic.park_timeout("1h"))).await;
    dq.provider().add(test_job("a")).await.unwrap();
    traces.events(Level::WARN);
    dq.advance(2 * HOUR).await;
    let warn = traces.events(Level::WARN);
    let says = " message=no ack or requeue came: the UNACKED job is dropped topic=work job.id=a";
    assert_eq!(warn, [says]);
    assert!(dq.job::<TestJob>("a").await.is_none());
    assert_eq!(dq.health().topics[0].counters.dropped, 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_its_handler_gives_up_says_so() {
    let (traces, _guard) = subscribe();
    let dq = begin(&Script::new(|_, _| async { Err(JobError::fatal("bad iban")) }), &traces, "1m x 3").await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.settle().await;
    let warn = traces.events(Level::WARN);
    let says = "the handler failed, and gave the job up: `on_exhausted` follows topic=work job.id=a attempt=1 fatal=true fence=";
    assert!(warn.len() == 1 && warn[0].contains(says), "{warn:#?}");
    assert_eq!(with(&traces.events(Level::ERROR), "the job is DEAD").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_is_a_warning_a_minute_and_the_dead_job_says_why() {
    let (traces, _guard) = subscribe();
    let mut dq = Script::hangs().start(|topic| topic.timeout("0s")).await;
    dq.provider().add(test_job("killer")).await.unwrap();
    let mut warnings = 0;
    for seed in 2.. {
        dq.advance(MINUTE).await;
        let warn = traces.events(Level::WARN);
        let warned = with(&warn, "jobs that ran in processes that died may be the cause, so they run alone");
        warnings += warned.len();
        assert_eq!(warned.len(), warn.len(), "{warn:#?}");
        let error = traces.events(Level::ERROR);
        if !error.is_empty() {
            let says = "cause=crashes error=\"the process died while the job ran alone in it\"";
            assert!(error.len() == 1 && error[0].contains(says), "{error:#?}");
            break;
        }
        let next = Script::hangs().beside(&dq, seed, |topic| topic.timeout("0s")).await;
        dq.kill();
        dq = next;
    }
    assert!(warnings > 0);
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_does_not_decode_is_one_line_without_the_payload() {
    let (traces, _guard) = subscribe();
    let dq = begin(&Script::acks(), &traces, "1m").await;
    dq.provider().topic("work").unwrap().add_json(r#"{"id": ["secret"]}"#).id("a").await.unwrap();
    dq.advance(HOUR).await;
    let error = traces.events(Level::ERROR);
    assert!(
        error.len() == 1 && error[0].contains("job.id=a attempts=1") && error[0].contains("cause=decode"),
        "{error:#?}"
    );
    assert!(traces.events(Level::WARN).is_empty() && traces.events(Level::INFO).is_empty());
    assert!(with(&traces.lines(), "secret").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_on_exhausted_is_not_called_one_of_the_handler() {
    let (traces, _guard) = subscribe();
    let script = Script::fails("no").on_exhausted(|_, _| async { panic!("oh") });
    let dq = begin(&script, &traces, "none").await;
    dq.provider().add(test_job("a")).await.unwrap();
    dq.advance(HOUR).await;
    let warn = traces.events(Level::WARN);
    let failed = with(&warn, "`on_exhausted` failed; the job becomes DEAD all the same");
    assert!(failed.len() == 1 && failed[0].contains("error=\"`on_exhausted` panicked: oh\""), "{warn:#?}");
    assert!(with(&warn, "the handler panicked").is_empty(), "{warn:#?}");
    assert!(
        traces.events(Level::ERROR)[0].contains("cause=error error=\"no\""),
        "the cause of its death is its failure"
    );
}

#[tokio::test(start_paused = true)]
async fn retried_dead_and_acked_jobs_differ_at_debug_and_done_is_only_a_state() {
    let (traces, _guard) = subscribe();
    let script = Script::new(|job, channel| async move {
        if job.id().as_str() == "good" { Ok(channel.ack()) } else { Err("no".into()) }
    });
    let dq = begin(&script, &traces, "1m").await;
    dq.provider().add(test_job("good")).await.unwrap();
    dq.provider().add(test_job("bad")).await.unwrap();
    dq.advance(HOUR).await;
    let debug = traces.events(Level::DEBUG);
    for says in [
        "message=acked topic=work job.id=good",
        "message=retried topic=work job.id=bad",
        "message=DEAD topic=work job.id=bad",
    ] {
        assert_eq!(with(&debug, says).len(), 1, "{says}: {debug:#?}");
    }
    assert!(with(&debug, "Done").is_empty(), "{debug:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_start_says_what_was_chosen_at_info_and_everything_at_debug() {
    let (traces, _guard) = subscribe();
    let script = Script::acks();
    let _dq = start(|factory| script.on(factory, |topic| topic.timeout("3s")).lease("20s")).await;
    let (info, debug) = (traces.events(Level::INFO), traces.events(Level::DEBUG));
    let of = |lines: &[String], text| with(lines, text)[0].clone();
    let (node, topic) = (of(&info, "starting"), of(&info, "listening"));
    assert!(node.contains("settings=lease = 20s (builder at ") && !node.contains("poll_interval"), "{node}");
    assert!(topic.contains("timeout = 3s (builder at ") && !topic.contains("on_timeout"), "{topic}");
    let (node, topic) = (of(&debug, "all settings of the node"), of(&debug, "all settings of the topic"));
    assert!(node.contains("poll_interval = 15s") && topic.contains("topic=work") && topic.contains("on_timeout = "));
    drop(start(|factory| script.on(factory, default_settings)).await);
    assert!(of(&traces.events(Level::INFO), "starting").contains("settings=all by default"));
}

#[tokio::test]
async fn a_provider_without_a_node_says_which_store_and_settings_it_has() {
    let (traces, _guard) = subscribe();
    let factory = dq::ContextFactory::new("shop").store("memory:of-a-provider").call_deadline("3s");
    let _provider = factory.connect().await.unwrap();
    let info = traces.events(Level::INFO);
    let [line] = with(&info, "providing")[..] else { panic!("{info:#?}") };
    assert!(line.contains("app=shop") && line.contains("settings=store = memory:of-a-provider (builder at "), "{line}");
    assert!(line.contains("call_deadline = 3s (builder at "), "{line}");
}
