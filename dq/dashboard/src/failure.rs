//! What goes wrong, as pages and as JSON.

use axum::http::StatusCode;
use dq::provider::{CallError, Invalid, Refusal};
use serde::Serialize;

use crate::user::{MAX_TOPICS, Role};

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
    #[error("you lack the role `{}`", .0.as_str())]
    NotAllowed(Role),
    #[error("you may only add: `replace` and `set` need the role `operate` too")]
    OnlyAppends,
    #[error(
        "you may only add, and to {MAX_TOPICS} topics at most: use one of these, or a token that has the role `operate` too"
    )]
    TooManyTopics,
    #[error("this browser does not have the key that it made when you logged in: log in again")]
    NoKey,
    #[error("the request took too long")]
    Slow,
    #[error("too many pages are live at once: close some")]
    TooManyLive,
    #[error("too many requests: try again in a second")]
    TooMany,
    #[error("you are not logged in")]
    Unknown,
    #[error("this name is not a host of the dashboard")]
    OtherHost,
    #[error("the system has no random bytes")]
    NoRandomness(#[from] getrandom::Error),
    #[error(transparent)]
    Call(#[from] CallError),
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
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Forged
            | Self::NoKey
            | Self::ReadOnly
            | Self::NotAllowed(_)
            | Self::OnlyAppends
            | Self::TooManyTopics => StatusCode::FORBIDDEN,
            Self::TooMany | Self::TooManyLive => StatusCode::TOO_MANY_REQUESTS,
            Self::Unknown => StatusCode::UNAUTHORIZED,
            Self::OtherHost => StatusCode::MISDIRECTED_REQUEST,
            Self::NoRandomness(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Call(error) => of_call(error),
        }
    }
}

const fn of_call(error: &CallError) -> StatusCode {
    match error {
        CallError::Invalid(Invalid::PayloadTooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
        CallError::Refused { refusal: Refusal::NoSuchJob | Refusal::NoSuchSchedule, .. } => StatusCode::NOT_FOUND,
        CallError::Refused { refusal: Refusal::TopicFull { .. } | Refusal::GroupFull { .. }, .. } => {
            StatusCode::TOO_MANY_REQUESTS
        }
        CallError::Refused { .. } => StatusCode::CONFLICT,
        CallError::NotDone { .. } | CallError::Unknown { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}
