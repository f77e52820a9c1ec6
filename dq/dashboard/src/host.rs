//! Where a request goes and where it comes from: the names that it gives to the dashboard, its origin, and the address of its sender.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};

use crate::access::Kind;
use crate::app::App;
use crate::rate::network;

/// The most bytes of a prefix.
const MAX_PREFIX: usize = 200;

/// The address of the sender, as buckets have it. `None`: the program does not tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) Option<IpAddr>);

impl Address {
    pub(crate) fn of(app: &App, parts: &Parts) -> Self {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|connected| connected.0.ip());
        // The nearest proxy wrote the last entry. A visitor can write only those before it.
        let forwarded = parts.headers.get_all("x-forwarded-for").into_iter().next_back();
        let forwarded = forwarded.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
        Self(if app.behind_proxy { forwarded.or(peer) } else { peer }.map(network))
    }

    /// The address as log lines have it.
    pub(crate) fn word(self) -> String {
        self.0.map_or_else(|| "unknown".into(), |address| address.to_string())
    }
}

/// The path of a prefix such as `/ops/dq`, without a slash at its end. `None`: it is no path, or has more in it than plain segments, so it
/// could lead to another host or add to the cookie.
pub(crate) fn prefix_in(text: &str) -> Option<&str> {
    let path = text.strip_suffix('/').unwrap_or(text);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte);
    let is_segment = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_plain);
    let fits = path.is_empty() || path.strip_prefix('/').is_some_and(|path| path.split('/').all(is_segment));
    (fits && path.len() <= MAX_PREFIX).then_some(path)
}

/// What the proxy stripped from the path: what the program says, or else what the nearest trusted proxy wrote last.
pub(crate) fn prefix<'a>(app: &'a App, headers: &'a HeaderMap) -> &'a str {
    if let Some(prefix) = &app.prefix {
        return prefix;
    }
    let sent = headers.get_all("x-forwarded-prefix").into_iter().next_back().filter(|_| app.behind_proxy);
    sent.and_then(|sent| prefix_in(sent.to_str().ok()?)).unwrap_or_default()
}

pub(crate) fn came_by_https(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|value| value == "https")
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The host of `HOST:PORT` or `[ADDRESS]:PORT`, without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    }
}

/// The names that a request gives to its host. Over HTTP/2 a request has an authority instead of the header `Host`.
fn names<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> impl Iterator<Item = &'a str> {
    text(headers, &HOST).into_iter().chain(uri.authority().map(Authority::as_str))
}

/// Whether a request names only hosts of this dashboard, and at least one.
pub(crate) fn is_ours(app: &App, headers: &HeaderMap, uri: &Uri) -> bool {
    if app.hosts.is_empty() && !matches!(app.access.0, Kind::Everyone) {
        return true;
    }
    let is_known = |name: &str| {
        let host = without_port(name).to_ascii_lowercase();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback()) || app.hosts.contains(&host)
    };
    names(headers, uri).next().is_some() && names(headers, uri).all(is_known)
}

/// Whether a page of another origin made the browser send this.
pub(crate) fn is_foreign(app: &App, headers: &HeaderMap, uri: &Uri) -> bool {
    if let Some(site) = text(headers, &HeaderName::from_static("sec-fetch-site")) {
        return !matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(headers, &ORIGIN) else { return false };
    let Some((_, authority)) = origin.split_once("://") else { return true };
    let forwarded = text(headers, &HeaderName::from_static("x-forwarded-host"));
    let is_named = names(headers, uri).chain(forwarded).any(|name| name.eq_ignore_ascii_case(authority));
    !is_named && !app.hosts.iter().any(|host| host == without_port(authority))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_path_of_plain_segments() {
        for (text, path) in [
            ("/ops/dq/", "/ops/dq"),
            ("/ops/dq", "/ops/dq"),
            ("/a%20b/~c-d_e.f", "/a%20b/~c-d_e.f"),
            ("/", ""),
            ("", ""),
        ] {
            assert_eq!(prefix_in(text), Some(path), "{text}");
        }
        let long = format!("/{}", "a".repeat(MAX_PREFIX));
        let bad = [
            "ops",
            "//evil.example",
            "/a//b",
            "/a/../b",
            "/./a",
            "/a;Domain=b",
            "/a b",
            "/a\"b",
            "/a\\b",
            "/a?b",
            "/a#b",
            "/é",
            &long,
        ];
        assert!(bad.iter().all(|text| prefix_in(text).is_none()));
    }
}
