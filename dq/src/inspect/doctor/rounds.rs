//! What a step reads: first the store, then the names of keys, then topic after topic.

use super::finding::Finding;
use super::records::Undecoded;
use super::{Doctor, Stage, TopicPart, records};
use crate::job::TopicName;
use crate::provider::{CallError, TopicProvider};
use crate::store::step::{DEFAULT_BYTES, MAX_JOBS};
use crate::store::{Examine, FindingCode, GiveUp, Mismatch, PageRequest, StoreError};

/// How many names of the directory are read at once.
const NAMES: usize = 100;

impl Doctor {
    /// Reads the next part, with three commands of the store at most.
    pub(super) async fn read(&mut self) -> Result<(), CallError> {
        match self.stage.clone() {
            Stage::Store => {
                self.examine_store().await?;
                self.stage = Stage::Keys { after: None };
            }
            Stage::Keys { after } => self.examine_keys(after).await?,
            Stage::Names => self.next_topic().await?,
            Stage::Topic { topic, part } => {
                let following = match self.examine_topic(&topic, part.clone()).await {
                    Ok(following) => following,
                    Err(error) => self.of_topic(topic.name(), part, error)?,
                };
                match following {
                    Some(part) => self.stage = Stage::Topic { topic, part },
                    None => self.topic_is_over(),
                }
            }
            Stage::Over => {}
        }
        Ok(())
    }

    pub(super) async fn examine_store(&mut self) -> Result<(), CallError> {
        match self.provider.dangers().await {
            Ok(dangers) => {
                dangers.into_iter().for_each(|danger| self.found(Finding::new(danger.code, None, danger.text)));
            }
            Err(error) => self.refused("the settings and the memory of the server", error)?,
        }
        Ok(())
    }

    async fn examine_keys(&mut self, after: Option<String>) -> Result<(), CallError> {
        match self.provider.examine_keys(self.only.as_ref(), after).await {
            Ok(examined) => {
                self.progress.looked_at += examined.looked_at;
                examined.mismatches.into_iter().for_each(|mismatch| self.found_mismatch(mismatch));
                for (topic, producers) in examined.producers {
                    *self.producers.entry(topic).or_default() += producers;
                }
                self.stage = match examined.next {
                    None => Stage::Names,
                    after => Stage::Keys { after },
                };
            }
            Err(error) => {
                self.refused("the names of the keys", error)?;
                self.stage = Stage::Names;
            }
        }
        Ok(())
    }

    async fn next_topic(&mut self) -> Result<(), CallError> {
        if let Some(name) = self.waiting.pop_front() {
            let topic = self.provider.topic(name.as_str())?;
            self.stage = Stage::Topic { topic, part: TopicPart::Whole };
            return Ok(());
        }
        let Some(after) = self.names.clone() else {
            self.stage = Stage::Over;
            return Ok(());
        };
        match self.provider.topic_names(after.as_deref(), NAMES).await {
            Ok(page) => {
                self.waiting.extend(page.names);
                self.names = page.next.map(Some);
            }
            Err(error) => {
                self.refused("the directory of topics", error)?;
                self.names = None;
            }
        }
        Ok(())
    }

    fn topic_is_over(&mut self) {
        self.undecoded = Undecoded::default();
        self.progress.topics += 1;
        self.stage = Stage::Names;
    }

    /// Examines one part of a topic, and returns the next one.
    async fn examine_topic(&mut self, topic: &TopicProvider, part: TopicPart) -> Result<Option<TopicPart>, CallError> {
        match part {
            TopicPart::Whole => {
                topic.check().await?;
                self.count_producers(topic.name());
                self.examine_listeners(topic).await?;
                Ok(Some(TopicPart::Schedules { after: None }))
            }
            TopicPart::Schedules { after } => {
                let (looked_at, ahead, next) = topic.schedules_ahead(after).await?;
                self.progress.looked_at += looked_at;
                let finding = |ahead| Finding::ahead(topic.name().clone(), ahead);
                ahead.into_iter().map(finding).for_each(|finding| self.found(finding));
                Ok(Some(next.map_or(TopicPart::Outbox, |next| TopicPart::Schedules { after: Some(next) })))
            }
            TopicPart::Outbox => {
                let targets = self.examine_outbox(topic).await?;
                Ok(Some(TopicPart::Targets(targets)))
            }
            TopicPart::Targets(mut targets) => {
                if let Some(seen) = targets.pop_front() {
                    self.examine_target(topic, &seen).await?;
                    return Ok(Some(TopicPart::Targets(targets)));
                }
                Ok(Some(TopicPart::of_sets(self.waiting_sets(topic).await?)))
            }
            TopicPart::Sets(mut sets) => {
                if let Some(set) = sets.pop_front() {
                    self.examine_set(topic, set).await?;
                }
                Ok(Some(TopicPart::of_sets(sets)))
            }
            TopicPart::Keys { after } => {
                let nodes = self.nodes_without_lease(topic.name());
                let examined = topic.examine(Examine { after, nodes }).await?;
                self.progress.looked_at += examined.looked_at;
                // Jobs go where their records say, so the repairs set second records aside first.
                examined.foreign.into_iter().for_each(|row| self.found(Finding::of_row(row)));
                examined.mismatches.into_iter().for_each(|mismatch| self.found_mismatch(mismatch));
                Ok(Some(match examined.next {
                    None => TopicPart::Records { states: &GiveUp::FROM, after: None },
                    after => TopicPart::Keys { after },
                }))
            }
            TopicPart::Records { states: [], .. } => {
                let undecoded = std::mem::take(&mut self.undecoded);
                undecoded.finding(topic.name()).into_iter().for_each(|finding| self.found(finding));
                Ok(None)
            }
            TopicPart::Records { states: states @ [state, others @ ..], after } => {
                let page =
                    topic.page(PageRequest { state: *state, after, limit: MAX_JOBS, bytes: DEFAULT_BYTES }).await?;
                self.progress.looked_at += page.jobs.len();
                for job in page.jobs {
                    self.undecoded.add(&job);
                    records::examined(topic.name(), job).into_iter().for_each(|finding| self.found(finding));
                }
                Ok(Some(match page.next {
                    None => TopicPart::Records { states: others, after: None },
                    after => TopicPart::Records { states, after },
                }))
            }
        }
    }

    /// What keeps a topic, or a part of it, from being examined is a finding, and what follows is examined. Returns that part, if it is of this
    /// topic.
    fn of_topic(
        &mut self,
        topic: &TopicName,
        part: TopicPart,
        error: CallError,
    ) -> Result<Option<TopicPart>, CallError> {
        match error.of_store() {
            Some(StoreError::WrongType { key, expected }) => {
                let mismatch = Mismatch {
                    code: FindingCode::WrongType,
                    topic: topic.clone(),
                    id: key.clone(),
                    detail: (*expected).to_owned(),
                };
                self.found_mismatch(mismatch);
            }
            Some(source @ StoreError::Version { .. }) => {
                let text = source.to_string();
                self.found(Finding::new(FindingCode::OtherVersion, Some(topic.clone()), text));
            }
            Some(source) if source.may_be_of_topic() => {
                let (what, following) = part.and_next();
                let text = format!("{what} could not be examined: {source}");
                let finding = Finding::new(FindingCode::NotExamined, Some(topic.clone()), text);
                self.found(Finding { id: Some(what.to_owned()), ..finding });
                return Ok(following);
            }
            _ => return Err(error),
        }
        Ok(None)
    }

    /// What the store refuses to show is a finding; an outage is an error.
    fn refused(&mut self, what: &str, error: CallError) -> Result<(), CallError> {
        match error.of_store() {
            Some(source) if !source.is_outage() => {
                let text = format!("{what} could not be examined: {source}");
                self.found(Finding::new(FindingCode::NotExamined, None, text));
                Ok(())
            }
            _ => Err(error),
        }
    }
}
