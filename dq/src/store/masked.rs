//! URLs of stores as errors, logs and `Debug` show them: without secrets, even where one stands in a wrong place.

/// The URL with `***` in place of user and password, without options, and with `***` in place of everything that may be a secret in a wrong
/// place, as a password whose `@HOST` is missing.
pub(crate) fn masked_url(url: &str) -> String {
    match url.split_once("://") {
        Some(("file", path)) if path.starts_with('/') => url.to_owned(),
        Some((scheme, rest)) => format!("{}://{}", masked_word(scheme), masked_rest(rest)),
        None => match url.split_once(':') {
            Some(("memory" | "file", _)) => url.to_owned(),
            // Without the slashes nothing tells where a password is.
            Some((scheme, rest)) if scheme.starts_with("redis") => {
                let slashes = rest.len() - rest.trim_start_matches('/').len();
                format!("{}:{}***", masked_word(scheme), &rest[..slashes])
            }
            Some(_) => masked_rest(url),
            None => masked_word(url).to_owned(),
        },
    }
}

/// Whether a text has only characters of schemes, hosts and paths.
pub(crate) fn is_word(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || "+-._/".contains(c))
}

fn masked_word(text: &str) -> &str {
    if is_word(text) { text } else { "***" }
}

/// What follows `://`.
fn masked_rest(rest: &str) -> String {
    let (server, options) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    // The `?` is in a password, or the `@` in an option.
    if options.contains('@') {
        return "***".into();
    }
    // A password may contain an `@`, so user and password end at the last one.
    match server.rsplit_once('@') {
        Some((_, server)) => format!("***@{}", masked_server(server)),
        None => masked_server(server),
    }
}

/// `HOST[:PORT][,HOST[:PORT]..][/DATABASE]`.
fn masked_server(server: &str) -> String {
    let (hosts, database) = server.split_once('/').unwrap_or((server, ""));
    if !hosts.split(',').all(is_host) {
        return "***".into();
    }
    if is_number(database, 10) { server.into() } else { format!("{hosts}/***") }
}

/// A host and perhaps a port. Anything else may be a password, and so may a longer number than a port has.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').map(|address| address.split_once(']')) {
        Some(Some((address, port))) => (address.replace(':', "."), port),
        Some(None) => return false,
        None => {
            let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            (host.to_owned(), port)
        }
    };
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| is_number(port, 5));
    is_port && is_word(&host)
}

fn is_number(text: &str, most: usize) -> bool {
    text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// URLs in which people have put a secret, each where it is not understood.
#[cfg(test)]
pub(crate) const SECRETS: [&str; 32] = [
    "redis://me:secret@host/2",
    "redis://me:se@secret@host:1/2",
    "redis://me:secret",
    "redis://:secret",
    "redis://me:secret/1",
    "redis://me:p@ss:secret",
    "redis://me:7/secret",
    "redis://me:secret:123",
    "redis://me:secret]",
    "redis://[secret@host",
    "redis://me:s?secret",
    "redis://me:s?secret@host",
    "redis://me:s#secret@host",
    "redis://host?secret",
    "redis://host?secret=1",
    "redis://host/1?password=secret",
    "redis://host/1?password=a@secret",
    "redis://secret!",
    "redis:me:secret",
    "redis:me:secret@host",
    "redis:/:secret@host",
    "reddis:me:secret@host",
    "//:secret@host:6379",
    "me:secret@redis://host",
    "me:secret@host:6379",
    "localhost:6379/secret",
    "rediss://host/2?secret=1",
    "redis+sentinel://me:secret,b:26379/shop",
    "redis+sentinel://me:secret:1,b:26379/shop",
    "redis+sentinel://one/shop?sentinel_password=p@secret",
    "redis+cluster://me:secret,b:7000",
    "file://me:secret@host/dq",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        for url in SECRETS {
            assert!(!masked_url(url).contains("secret"), "{url}: {}", masked_url(url));
        }
        for (url, shown) in [
            ("redis://me:se@cret@host:1/2", "redis://***@host:1/2"),
            ("redis://me:cret", "redis://***"),
            ("redis://host/1?password=x", "redis://host/1"),
            ("redis://me:1234567", "redis://***"),
            ("redis+sentinel://me:x@one:1,[::1]:2/3", "redis+sentinel://***@one:1,[::1]:2/3"),
            ("redis:me", "redis:***"),
            ("me:x@host:6379", "***@host:6379"),
        ] {
            assert_eq!(masked_url(url), shown);
        }
        for url in
            ["memory:jobs", "file:///srv/dq:1", "redis://[::1]:6379/3", "redis://[::1]", "./data", "localhost:6379"]
        {
            assert_eq!(masked_url(url), url);
        }
    }
}
