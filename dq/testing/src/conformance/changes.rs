//! Sends changes of jobs, each in a batch of its own unless a method says otherwise.

use super::producer::answered;
use super::topic::{Topic, id};
use dq::job::{Codec, Metadata, Record};
use dq::store::{ChangeKind, ChangeOutcome, ChangeVerdict, JobChange};

/// A change of one job, whatever its version.
pub(super) fn change(name: &str, what: ChangeKind) -> JobChange {
    JobChange::new(id(name), what)
}

/// A change of the payload.
pub(super) fn update(payload: &str) -> ChangeKind {
    ChangeKind::Update(Record::new(&Metadata { attempts: 9, ..Metadata::default() }, Codec::Json, payload.as_bytes()))
}

impl Topic {
    /// Sends changes in one batch.
    pub async fn change_all(&self, changes: Vec<JobChange>) -> Vec<ChangeOutcome> {
        let answer = self.producer.change(self.numbered(changes)).await.expect("change is answered");
        self.audit_step().await;
        answered(answer)
    }

    /// Sends one change.
    pub async fn change(&self, name: &str, what: ChangeKind) -> ChangeOutcome {
        self.change_all(vec![change(name, what)]).await.remove(0)
    }

    /// Sends one change, which must take effect.
    pub async fn changed(&self, name: &str, what: ChangeKind) -> ChangeOutcome {
        let outcome = self.change(name, what).await;
        assert_eq!(outcome.verdict, ChangeVerdict::Changed, "{outcome:?}");
        outcome
    }
}
