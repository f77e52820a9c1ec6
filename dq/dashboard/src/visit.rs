//! A request that was let in, as its handler sees it.

use axum::extract::{FromRequestParts, OriginalUri};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;

use crate::access::User;
use crate::failure::Failure;
use crate::session::Session;

/// Who comes, and where the dashboard is.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    /// The path of the dashboard without a slash at its end: empty if it is the root.
    pub(crate) base: String,
    pub(crate) user: User,
    /// The session of a browser; none with the JSON API.
    pub(crate) session: Option<Session>,
}

impl<S: Send + Sync> FromRequestParts<S> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let visit = parts.extensions.get::<Self>().cloned();
        visit.ok_or_else(|| crate::pages::failure(&crate::pages::Frame::bare(""), &Failure::Unknown))
    }
}

/// The path under which the dashboard is nested, from the path that was asked for and what is left of it.
pub(crate) fn base(original: Option<&OriginalUri>, inner: &Uri) -> String {
    let whole = original.map_or(inner.path(), |original| original.0.path());
    let base = whole.strip_suffix(inner.path()).unwrap_or(if inner.path() == "/" { whole } else { "" });
    base.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_what_nesting_took_away() {
        let of = |whole: &str, inner: &str| base(Some(&OriginalUri(whole.parse().unwrap())), &inner.parse().unwrap());
        assert_eq!(of("/admin/dq", "/"), "/admin/dq");
        assert_eq!(of("/admin/dq/", "/"), "/admin/dq");
        assert_eq!(of("/admin/dq/topics/a", "/topics/a"), "/admin/dq");
        assert_eq!(of("/", "/"), "");
        assert_eq!(of("/nodes", "/nodes"), "");
    }
}
