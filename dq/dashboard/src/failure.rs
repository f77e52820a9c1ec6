//! What goes wrong, as pages and as JSON.

use axum::http::StatusCode;
use dq::inspect::BulkError;
use dq::provider::{AddError, ChangeError, ChangeRefusal, CommandError, QueryError, ScheduleError, TopicError};
use serde::Serialize;

/// Why a request did not do what it was for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Bad(String),
    #[error("{text}")]
    Body { status: StatusCode, text: String },
    #[error("there is no {0}")]
    NotThere(&'static str),
    #[error("the form is too old, or came from elsewhere: go back, load the page again, and send it once more")]
    Forged,
    #[error("this dashboard is read-only")]
    ReadOnly,
    #[error("too many pages are live at once: close some")]
    TooManyLive,
    #[error("too many requests: try again in a second")]
    TooMany,
    #[error("you are not logged in")]
    Unknown,
    #[error("this name is not a host of the dashboard")]
    OtherHost,
    #[error("the system has no random bytes")]
    NoRandomness,
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error(transparent)]
    Topic(#[from] TopicError),
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error(transparent)]
    Add(#[from] AddError),
    #[error(transparent)]
    Bulk(#[from] BulkError),
}

/// A failure as JSON.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Problem {
    /// What went wrong, in words.
    pub(crate) error: String,
}

impl Failure {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Bad(_) => StatusCode::BAD_REQUEST,
            Self::Body { status, .. } => *status,
            Self::NotThere(_) => StatusCode::NOT_FOUND,
            Self::Forged | Self::ReadOnly => StatusCode::FORBIDDEN,
            Self::TooMany | Self::TooManyLive => StatusCode::TOO_MANY_REQUESTS,
            Self::Unknown => StatusCode::UNAUTHORIZED,
            Self::OtherHost => StatusCode::MISDIRECTED_REQUEST,
            Self::NoRandomness => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Query(error) | Self::Bulk(BulkError::Query(error)) => of_query(error),
            Self::Command(error) | Self::Bulk(BulkError::Command(error)) => of_command(error),
            Self::Change(error) | Self::Bulk(BulkError::Change(error)) => of_change(error),
            Self::Topic(error) => match error {
                TopicError::NotDone { .. } | TopicError::Unknown { .. } | TopicError::Stopped { .. } => UNAVAILABLE,
                _ => StatusCode::BAD_REQUEST,
            },
            Self::Schedule(error) => of_schedule(error),
            Self::Add(error) => of_add(error),
            Self::Bulk(_) => UNAVAILABLE,
        }
    }
}

const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

const fn of_query(error: &QueryError) -> StatusCode {
    match error {
        QueryError::BadName(_) | QueryError::BadWithin(_) => StatusCode::BAD_REQUEST,
        _ => UNAVAILABLE,
    }
}

const fn of_command(error: &CommandError) -> StatusCode {
    match error {
        CommandError::BadName(_) | CommandError::BadWithin(_) => StatusCode::BAD_REQUEST,
        CommandError::Unchanged { .. } => StatusCode::CONFLICT,
        _ => UNAVAILABLE,
    }
}

const fn of_change(error: &ChangeError) -> StatusCode {
    match error {
        ChangeError::Refused { refusal: ChangeRefusal::NoSuchJob, .. } => StatusCode::NOT_FOUND,
        ChangeError::Refused { .. } => StatusCode::CONFLICT,
        ChangeError::NotDone { .. } | ChangeError::Unknown { .. } | ChangeError::Stopped { .. } => UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}

const fn of_schedule(error: &ScheduleError) -> StatusCode {
    match error {
        ScheduleError::NoSuchSchedule { .. } => StatusCode::NOT_FOUND,
        ScheduleError::Query(error) => of_query(error),
        ScheduleError::Change(error) => of_change(error),
        ScheduleError::Add(error) => of_add(error),
        _ => StatusCode::BAD_REQUEST,
    }
}

const fn of_add(error: &AddError) -> StatusCode {
    match error {
        AddError::AlreadyExists { .. } | AddError::Draining { .. } => StatusCode::CONFLICT,
        AddError::PayloadTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        AddError::NotAdded { .. } | AddError::Unknown { .. } | AddError::Stopped { .. } => UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}
