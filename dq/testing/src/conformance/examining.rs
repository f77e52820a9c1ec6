//! What the doctor asks a store: a sound topic has no mismatch, and a job that no node can decode becomes DEAD with its payload.

use super::events::{NODE, add_in_state};
use super::inspection::inspector;
use super::producer::{delayed, job, with_payload};
use super::topic::{Topic, id, secs};
use bytes::Bytes;
use dq::inspect::{Doctor, FindingCode};
use dq::job::{Cause, Delivery, Record, State};
use dq::store::step::Change;
use dq::store::{Due, Examine, ForeignRow, GiveUp, Mismatch, NewJob, Repair};

impl Topic {
    /// What the store finds wrong with the jobs of the topic, and which of its rows are to be set aside.
    async fn examined(&self) -> (Vec<Mismatch>, Vec<ForeignRow>) {
        let (mut found, mut foreign, mut after) = (Vec::new(), Vec::new(), None);
        loop {
            let page = self.store.examine(&self.key, Examine { after, nodes: Vec::new() }).await;
            let page = page.expect("examine is answered");
            found.extend(page.mismatches);
            foreign.extend(page.foreign);
            after = page.next;
            if after.is_none() {
                return (found, foreign);
            }
        }
    }

    /// Everything that the store finds wrong with the topic.
    pub(super) async fn mismatches(&self) -> Vec<Mismatch> {
        let (mut found, mut after) = (self.examined().await.0, None::<String>);
        loop {
            let page = self.store.examine_keys(&self.key.app, Some(&self.key.topic), after.as_deref()).await;
            let page = page.expect("examine_keys is answered");
            found.extend(page.mismatches);
            after = page.next;
            if after.is_none() {
                return found;
            }
        }
    }

    /// The rows of the topic that no store of this version writes.
    pub(super) async fn foreign(&self) -> Vec<ForeignRow> {
        self.examined().await.1
    }

    /// Gives up the job, which has this record.
    pub(super) async fn give_up(&self, name: &str, record: Record) -> bool {
        let job = GiveUp { id: id(name), record, error: "it is broken".into() };
        self.store.repair(&self.key, &Repair::GiveUp(job)).await.expect("repair is answered")
    }

    pub(super) async fn record_of(&self, name: &str) -> Record {
        self.find(name).await.expect("the job is there").record
    }
}

/// A topic with jobs in every state, near and far, and with broadcasts and crashes has no mismatch (query `examine`).
pub async fn sound_topic_has_no_mismatch(t: &Topic) {
    assert_eq!(t.mismatches().await, []);
    for state in State::ALL {
        add_in_state(t, state.as_str(), state).await;
    }
    t.running("m", "b").await;
    t.running("crashing", "c").await;
    t.crash("crashing").await;
    t.delete("b").await;
    let waiting = NewJob { deliver: Delivery::Both, ..delayed("d", secs(60)) };
    t.add_all(vec![waiting, delayed("much-later", secs(7_200)), delayed("later", secs(290))]).await;
    assert_eq!(t.mismatches().await, []);
}

/// A job that waits, is parked or is DEAD is given up: DEAD with the cause `decode` and its payload, and can be requeued (query
/// `repair`).
pub async fn job_that_does_not_decode_is_given_up_with_its_payload(t: &Topic) {
    for state in GiveUp::FROM {
        let name = state.as_str();
        add_in_state(t, name, state).await;
        let record = t.record_of(name).await;
        for _ in 0..2 {
            assert!(t.give_up(name, record.clone()).await, "{state}");
            let found = t.record_of(name).await;
            let metadata = found.metadata().expect("it can be read");
            assert_eq!((t.state(name).await, metadata.cause), (Some(State::Dead), Some(Cause::Decode)), "{state}");
            assert_eq!((metadata.error.as_deref(), metadata.parked_by), (Some("it is broken"), None));
            assert_eq!(found.payload().ok(), record.payload().ok());
        }
        assert!(t.requeue(name).await.changed);
        t.run(NODE, name, Change::Drop).await;
    }
    assert_eq!(t.mismatches().await, []);
}

/// A record that cannot be read becomes the payload of the DEAD job, near or far (query `repair`).
pub async fn record_that_cannot_be_read_becomes_the_payload_of_the_dead_job(t: &Topic) {
    for (name, delay) in [("near", 60), ("far", 7_200)] {
        let record = Record::from_bytes(Bytes::from_static(b"what?"));
        t.add_all(vec![NewJob { record: record.clone(), ..delayed(name, secs(delay)) }]).await;
        assert!(t.give_up(name, t.record_of(name).await).await);
        let found = t.record_of(name).await;
        assert_eq!(found.payload().expect("it can be read").1, b"what?");
        assert_eq!(t.state(name).await, Some(State::Dead));
    }
    assert_eq!(t.mismatches().await, []);
}

/// A job that runs, is DONE, has gone or has another payload by now is left alone (query `repair`).
pub async fn job_that_runs_or_has_another_payload_is_not_given_up(t: &Topic) {
    for state in [State::Running, State::Done] {
        let name = state.as_str();
        let claim = add_in_state(t, name, state).await;
        assert!(!t.give_up(name, t.record_of(name).await).await, "{state}");
        assert_eq!(t.state(name).await, Some(state));
        if let Some(claim) = claim {
            t.end(NODE, &claim, Change::Drop).await;
        }
    }
    assert!(!t.give_up("unknown", job("unknown").record).await);
    t.add_all(vec![delayed("waits", secs(60))]).await;
    assert!(!t.give_up("waits", job("other").record).await);
    assert_eq!(t.state("waits").await, Some(State::Delayed));
}

/// Examines the topic, and returns what was found in it.
async fn findings(t: &Topic) -> (Doctor, Vec<(FindingCode, String)>) {
    let mut doctor = inspector(t).doctor(Some(t.key.topic.as_str())).expect("the name is valid");
    while doctor.step().await.expect("the doctor is answered").is_some() {}
    let of_topic = doctor.findings().iter().filter(|finding| finding.topic.is_some());
    let found = of_topic.map(|finding| (finding.code, finding.id.clone().unwrap_or_default())).collect();
    (doctor, found)
}

/// The doctor finds the jobs that no node can decode beside sound ones, gives them up, and then finds nothing (queries `examine`, `page`
/// and `repair`).
pub async fn doctor_gives_up_what_does_not_decode_and_nothing_else(t: &Topic) {
    let far = |name: &str, payload: &str| NewJob { due: Due::After(secs(3_600)), ..with_payload(name, payload) };
    let mangled = NewJob { record: Record::from_bytes(Bytes::from_static(b"what?")), ..far("mangled", "") };
    let mut of_later = far("of-later", "").record.as_bytes().to_vec();
    *of_later.last_mut().expect("it has a codec") = b'?';
    let of_later = NewJob { record: Record::from_bytes(of_later.into()), ..far("of-later", "") };
    t.add_all(vec![far("sound", "{}"), mangled, of_later, far("cut-off", "{\"a\":"), far("also-sound", "[1]")]).await;
    let (mut doctor, mut found) = findings(t).await;
    found.sort();
    let mangled = ["mangled", "of-later"].map(|name| (FindingCode::MangledRecord, name.to_owned()));
    assert_eq!(found, [&mangled[..], &[(FindingCode::NotJson, "cut-off".to_owned())]].concat());
    while let Some(repaired) = doctor.repair().await.expect("the repair is answered") {
        assert!(repaired.done, "{repaired:?}");
    }
    assert_eq!(findings(t).await.1, []);
    for name in ["sound", "also-sound"] {
        assert_eq!(t.state(name).await, Some(State::Delayed), "{name}");
    }
    for name in ["mangled", "of-later", "cut-off"] {
        assert_eq!(t.state(name).await, Some(State::Dead), "{name}");
    }
}

/// DEAD jobs of the cause `decode` whose payload is JSON are one finding for the topic; other DEAD jobs are none (query `page`).
pub async fn doctor_names_dead_jobs_whose_json_no_node_decoded(t: &Topic) {
    for (name, payload) in [("first", "{}"), ("second", "[1]"), ("no-json", "{\"a\":")] {
        t.add_all(vec![NewJob { due: Due::After(secs(60)), ..with_payload(name, payload) }]).await;
        assert!(t.give_up(name, t.record_of(name).await).await, "{name}");
    }
    add_in_state(t, "failed", State::Dead).await;
    let (doctor, found) = findings(t).await;
    assert_eq!(found, [(FindingCode::SchemaDifference, String::new())]);
    let said = doctor.findings().iter().find(|finding| finding.topic.is_some()).map(|finding| &*finding.text);
    assert_eq!(said, Some("2 DEAD jobs have a payload that no node could decode, first for example: it is broken"));
    t.delete("first").await;
    t.delete("second").await;
    assert_eq!(findings(t).await.1, []);
}

/// A schedule that this version cannot read is an error with what to do, and no repair touches it; one that it reads is none (query `page`).
pub async fn doctor_names_a_schedule_that_cannot_be_read(t: &Topic) {
    let schedule = |name: &str, text: &str| NewJob { due: Due::After(secs(60)), ..with_payload(name, text) };
    t.add_all(vec![schedule("dq:schedule:newer", "{\"of\":\"a later version\"}")]).await;
    let (mut doctor, found) = findings(t).await;
    assert_eq!(found, [(FindingCode::ScheduleUnreadable, "dq:schedule:newer".to_owned())]);
    let advice = doctor.findings().iter().find(|finding| finding.topic.is_some()).map(|finding| &*finding.advice);
    assert_eq!(advice, Some("use the version of dq that wrote it, or add the schedule again"));
    assert!(doctor.repair().await.expect("the repair is answered").is_none());
    t.delete("dq:schedule:newer").await;
    assert_eq!(findings(t).await.1, []);
}

/// Nodes of two versions that hold jobs are a finding, until the lease of one of them has ended (query `overview`).
pub async fn doctor_names_the_versions_of_the_nodes_that_live(t: &Topic) {
    t.running("web-1-4711-v1.2.0-6923d0f1-012ec2040ea64cf6", "a").await;
    t.running("no-version", "b").await;
    assert_eq!(findings(t).await.1, []);
    t.running("web-2-4712-v1.3.0-6923d0f2-01ffc2040ea64cf7", "c").await;
    let (doctor, found) = findings(t).await;
    assert_eq!(found, [(FindingCode::SeveralVersions, String::new())]);
    assert!(doctor.findings().iter().any(|finding| finding.text.ends_with("listen: 1.2.0, 1.3.0")));
    t.advance(secs(3_600)).await;
    assert_eq!(findings(t).await.1, []);
}
