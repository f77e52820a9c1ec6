//! URLs of stores as errors and logs show them: without secrets, also where one stands in a wrong place.

/// `HOST[:PORT][/DATABASE]`, without what may be a password whose `@HOST` is missing: a port or a database that is not a number. A longer
/// number than a port has may be one too.
pub(crate) fn masked_server(server: &str) -> String {
    let is_number = |text: &str, most| text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    let (host, database) = server.split_once('/').unwrap_or((server, ""));
    match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') && !is_number(port, 5) => "***".into(),
        _ if !is_number(database, 10) => format!("{host}/***"),
        _ => server.into(),
    }
}
