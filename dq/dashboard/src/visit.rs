//! A request that was let in, as its handler sees it.

use axum::extract::OriginalUri;
use axum::http::{HeaderMap, Uri};

use crate::app::App;
use crate::host::prefix;
use crate::session::Session;
use crate::user::User;

/// Who comes, and where the dashboard is.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    /// The path of the dashboard in the browser, without a slash at its end: empty if it is the root.
    pub(crate) base: String,
    pub(crate) user: User,
    /// The session of a browser; none with the JSON API.
    pub(crate) session: Option<Session>,
}

/// The path of the dashboard in the browser: what a proxy stripped, and where the dashboard is nested.
pub(crate) fn base(app: &App, headers: &HeaderMap, original: Option<&OriginalUri>, inner: &Uri) -> String {
    format!("{}{}", prefix(app, headers), nested_at(original, inner))
}

/// The path under which the dashboard is nested, from the path that was asked for and what is left of it.
fn nested_at<'a>(original: Option<&'a OriginalUri>, inner: &'a Uri) -> &'a str {
    let whole = original.map_or(inner.path(), |original| original.0.path());
    let base = whole.strip_suffix(inner.path()).unwrap_or(if inner.path() == "/" { whole } else { "" });
    base.trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_what_nesting_took_away() {
        let of = |whole: &str, inner: &str| {
            nested_at(Some(&OriginalUri(whole.parse().unwrap())), &inner.parse().unwrap()).to_owned()
        };
        assert_eq!(of("/admin/dq", "/"), "/admin/dq");
        assert_eq!(of("/admin/dq/", "/"), "/admin/dq");
        assert_eq!(of("/admin/dq/topics/a", "/topics/a"), "/admin/dq");
        assert_eq!(of("/", "/"), "");
        assert_eq!(of("/nodes", "/nodes"), "");
    }
}
