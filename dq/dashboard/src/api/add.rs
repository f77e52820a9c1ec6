//! Adding jobs.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use dq::job::{GroupName, Priority, TopicName, Weight};
use dq::provider::{Add, AddedHow, Call, CallError, OnDead};
use dq::time::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::answers::Added;
use super::{Answer, body, failed, json};
use crate::app::{App, Shared};
use crate::audit::audit;
use crate::failure::{Failure, Problem};
use crate::user::{Role, User};
use crate::visit::Visit;

/// A job to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewJob {
    /// Any JSON; the store keeps its text as it is sent, byte by byte.
    #[schema(value_type = Value)]
    payload: Box<RawValue>,
    /// The id, 1 to 256 bytes; without it dq makes one. Give one, so that a repeat after an error adds the job once.
    id: Option<String>,
    /// The delay, such as `15m`. Give this or `at`; without either, the topic's default delay counts.
    after: Option<String>,
    /// The due time: RFC 3339 with its offset, or milliseconds since the Unix epoch as a text.
    at: Option<String>,
    /// What becomes of a job with the same id: `fail` (the default), `keep` (the default with the header `Idempotency-Key`) or `replace`,
    /// which needs the role `operate` too.
    on_duplicate: Option<String>,
    /// After this delay the job becomes DEAD without a run.
    expires_after: Option<String>,
    /// How long the store keeps the job after it has run.
    retain: Option<String>,
    /// The retry policy of this job, such as `1m, 5m, 1h` or `none`.
    retry: Option<String>,
    /// Which of the due jobs of the topic go first: `high`, `normal` (the default) or `low`.
    priority: Option<Priority>,
    /// The group of the job, 1 to 128 bytes: only so many of its jobs run at a time as the topic allows.
    group: Option<GroupName>,
    /// How much of the rate of the topic its start spends, 1 (the default) to 10,000.
    weight: Option<Weight>,
    /// For how long the id stays taken, even if the job has run or was deleted, such as `24h`: 1 s to 30 days. Needs an `id`. With the header
    /// `Idempotency-Key` the default is `24h`.
    unique_for: Option<String>,
    /// Headers as pairs of name and value, up to 8 KiB in all, with 4 bytes for each; without NUL, CR, LF and ESC.
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// The job set of which the job becomes a member; the set adds it to its topic. Needs an `id`, and the role `operate` too.
    set: Option<MemberOf>,
}

/// A job set that gets a member.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MemberOf {
    /// The topic of its last job, where it lives.
    topic: String,
    /// Its name, 1 to 256 bytes. The first member makes the set.
    name: String,
    /// What the job does to the set if it becomes DEAD: it has ended (`count`, the default), the set waits until it was requeued, deleted or
    /// acked (`wait`), or the members that have not ended are deleted (`cancel_rest`).
    #[serde(default)]
    on_dead: OnDead,
}

/// Adds a job.
#[utoipa::path(post, path = "/topics/{topic}/jobs", tag = "jobs", request_body = NewJob,
    params(("topic" = String, Path), ("Idempotency-Key" = Option<String>, Header, description = "The id of the job, which stays taken for `unique_for`: a repeat adds nothing and answers 200")),
    responses((status = 201, description = "The job is in the store", body = Added), (status = 200, description = "A job with this id was there, and stays", body = Added),
        (status = 202, description = "The job is a member of its set, which adds it", body = Added),
        (status = 400, body = Problem), (status = 409, description = "A job with this id exists, or the topic drains", body = Problem),
        (status = 413, body = Problem), (status = 429, description = "As many jobs wait as may: send it again later", body = Problem), (status = 503, description = "The store did not answer: send it again with the same id", body = Problem)))]
pub(super) async fn add(
    State(app): State<Shared>,
    visit: Visit,
    Path(topic): Path<String>,
    headers: HeaderMap,
    sent: Result<Json<NewJob>, JsonRejection>,
) -> Answer {
    let job = body(sent).and_then(|job| match key_in(&headers)? {
        Some(key) => job.under_key(key),
        None => Ok(job),
    });
    let job = job.map_err(failed)?;
    let wanted = job.id.clone().unwrap_or_default();
    let added = match job.is_allowed(&app, &visit.user, &topic) {
        Ok(()) => put(&app, &topic, job).await,
        Err(failure) => Err(failure),
    };
    match added {
        Ok(added) => {
            audit(&visit.user, "add", &topic, &added.id, added.how);
            let status = match added.how {
                "kept" => StatusCode::OK,
                "member" => StatusCode::ACCEPTED,
                _ => StatusCode::CREATED,
            };
            Ok((status, json(added)).into_response())
        }
        Err(failure) => {
            audit(&visit.user, "add", &topic, &wanted, &format!("failed: {failure}"));
            Err(failed(failure))
        }
    }
}

/// The key in the header `Idempotency-Key`: a string of RFC 8941 with quotes, as the draft of the IETF has it, or the bare text that most
/// interfaces take.
fn key_in(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let bad = |what: &str| Failure::Bad(format!("`Idempotency-Key` {what}"));
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(bad("is there twice"));
    }
    let text = value.to_str().map_err(|_| bad("has other characters than visible ASCII"))?.trim();
    let Some(quoted) = text.strip_prefix('"') else { return Ok(Some(text.to_owned())) };
    let (mut key, mut characters) = (String::new(), quoted.chars());
    loop {
        match characters.next() {
            Some('"') if characters.as_str().is_empty() => return Ok(Some(key)),
            Some('\\') => match characters.next() {
                Some(escaped @ ('"' | '\\')) => key.push(escaped),
                _ => return Err(bad("has a backslash before something else than a quote or a backslash")),
            },
            Some('"') | None => {
                return Err(bad("begins with a quote, so it has to end with one and have none between"));
            }
            Some(character) => key.push(character),
        }
    }
}

impl NewJob {
    /// The job under an idempotency key, which is its id and stays taken.
    fn under_key(self, key: String) -> Result<Self, Failure> {
        if self.id.as_ref().is_some_and(|id| *id != key) {
            return Err(Failure::Bad(
                "`Idempotency-Key` is the id of the job, and `id` is another one: give one of them".into(),
            ));
        }
        if self.on_duplicate.as_deref() == Some("replace") {
            return Err(Failure::Bad(
                "`replace` would run the job again at each repeat: leave out `Idempotency-Key` or `on_duplicate`"
                    .into(),
            ));
        }
        let on_duplicate = self.on_duplicate.or_else(|| Some("keep".into()));
        let unique_for = self.unique_for.or_else(|| Some("24h".into()));
        Ok(Self { id: Some(key), on_duplicate, unique_for, ..self })
    }
}

/// A word of `on_duplicate` that is none.
fn unknown(word: &str) -> Failure {
    Failure::Bad(format!("`on_duplicate` is fail, keep or replace, not `{word}`"))
}

async fn put(app: &Shared, topic: &str, mut job: NewJob) -> Result<Added, Failure> {
    let on_duplicate = job.on_duplicate.take();
    if let Some(set) = job.set.take() {
        return put_member(app, topic, job, &set, on_duplicate.as_deref()).await;
    }
    let add = job.into_call(app, topic)?;
    let (id, how) = match on_duplicate.as_deref() {
        None | Some("fail") => add.await.map(|added| (added.id, added.how))?,
        Some("replace") => add.replace_existing().await.map(|added| (added.id, added.how))?,
        Some("keep") => add.keep_existing().await.map(|added| (added.id, added.how))?,
        Some(other) => return Err(unknown(other)),
    };
    let (how, state) = match how {
        AddedHow::Kept(state) => ("kept", Some(state.to_string())),
        AddedHow::KeptDeleted => ("kept", Some("deleted".into())),
        AddedHow::New => ("added", None),
        AddedHow::Buffered => ("buffered", None),
        _ => ("replaced", None),
    };
    Ok(Added { id: id.to_string(), how, state })
}

/// Adds a member to a set. A job with its id that exists keeps it out, unless it is to be replaced.
async fn put_member(
    app: &Shared,
    topic: &str,
    job: NewJob,
    set: &MemberOf,
    on_duplicate: Option<&str>,
) -> Result<Added, Failure> {
    let no_id = || Failure::Bad("a member of a job set needs an `id`, so that a repeat counts it once".into());
    let id = job.id.clone().ok_or_else(no_id)?;
    let home = app.provider.topic(&set.topic).map_err(CallError::from)?;
    let add = job.into_call(app, topic)?;
    let add = match on_duplicate {
        None | Some("fail" | "keep") => add,
        Some("replace") => add.replace_existing(),
        Some(other) => return Err(unknown(other)),
    };
    add.member_of(&home, &set.name).on_dead(set.on_dead).await?;
    Ok(Added { id, how: "member", state: None })
}

impl NewJob {
    /// A user who may only add appends, to a bounded number of topics: no job says who added it, and no set who opened it.
    fn is_allowed(&self, app: &App, user: &User, topic: &str) -> Result<(), Failure> {
        if user.may(Role::Operate) {
            return Ok(());
        }
        if self.set.is_some() || self.on_duplicate.as_deref() == Some("replace") {
            return Err(Failure::OnlyAppends);
        }
        let topic = TopicName::new(topic).map_err(CallError::from)?;
        if app.reached.has_room(user, topic.as_str()) { Ok(()) } else { Err(Failure::TooManyTopics) }
    }

    /// The last job of a set.
    pub(super) fn into_last(self, app: &Shared, topic: &str) -> Result<Call<Add>, Failure> {
        match (&self.set, &self.on_duplicate) {
            (None, None) => self.into_call(app, topic),
            _ => Err(Failure::Bad("the last job of a set takes no `set` and no `on_duplicate`".into())),
        }
    }

    /// The add, without what becomes of a job with the same id, and without the set.
    fn into_call(self, app: &Shared, topic: &str) -> Result<Call<Add>, Failure> {
        let mut add = app.provider.topic(topic).map_err(CallError::from)?.add_json(self.payload.get());
        if self.after.is_some() && self.at.is_some() {
            return Err(Failure::Bad("give `after` or `at`, not both".into()));
        }
        if let Some(id) = self.id {
            add = add.id(id);
        }
        if let Some(after) = self.after {
            add = add.after(after);
        }
        if let Some(at) = self.at {
            add = add.at(at.parse::<Timestamp>()?);
        }
        if let Some(delay) = self.expires_after {
            add = add.expires_after(delay);
        }
        if let Some(delay) = self.retain {
            add = add.retain(delay);
        }
        if let Some(policy) = self.retry {
            add = add.retry(policy);
        }
        if let Some(priority) = self.priority {
            add = add.priority(priority);
        }
        if let Some(group) = self.group {
            add = add.group(group);
        }
        if let Some(weight) = self.weight {
            add = add.weight(weight);
        }
        if let Some(time) = self.unique_for {
            add = add.unique_for(time);
        }
        Ok(self.headers.into_iter().fold(add, |add, (name, value)| add.header(name, value)))
    }
}
