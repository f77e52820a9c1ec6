//! Parses `redis://[USER][:PASSWORD@]HOST[:PORT][/DATABASE][?prefix=TEXT]`, or `rediss://` for TLS with the options
//! `ca=FILE&cert=FILE&key=FILE`; and the same with sentinels (`sentinel`) or several servers of a cluster (`cluster`). Secrets stay here: errors and logs show a masked URL.

use redis::{ConnectionAddr, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo};

use super::sentinel::{Host, Sentinels};
#[cfg(feature = "tls")]
use super::tls::Certificates;
use crate::store::masked_url;

/// A URL that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRedisUrl {
    /// The text is not the URL of a Redis server. Write `redis://USER:PASSWORD@HOST:PORT/DATABASE`; only the host is
    /// required.
    #[error(
        "`{url}` is not the URL of a Redis server: {reason}; write redis://USER:PASSWORD@HOST:PORT/DATABASE, where only HOST is required"
    )]
    Malformed {
        /// The URL without secrets.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The URL asks for TLS, and dq was built without it. Enable the feature `tls`.
    #[error("`{url}` needs TLS: enable the feature `tls` of dq")]
    NoTls {
        /// The URL without secrets.
        url: String,
    },
    /// An option behind the `?` of a URL cannot be used.
    #[error(
        "the options of `{url}` cannot be used: {reason}; the options are ?prefix=TEXT (in place of `dq` in front of all keys) and, with rediss, ca=FILE (the authority that signed the server's certificate) and cert=FILE&key=FILE (a client certificate), each a PEM file"
    )]
    Option {
        /// The URL without secrets.
        url: String,
        /// What is wrong.
        reason: String,
    },
}

/// Which part of a URL is wrong, if it is one that shows no secret: the port or the database.
fn wrong_part(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let server = rest.rsplit_once('@').map_or(rest, |(_, server)| server);
    let (host, database) = server.split_once('/').unwrap_or((server, ""));
    let port = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map(|(_, port)| port);
    match port {
        _ if host.is_empty() => Some("it names no host".to_owned()),
        // Not quoted: it may be a password whose `@HOST` is missing.
        Some(port) if port.parse::<u16>().is_err() => Some("the port is not a number from 1 to 65535".to_owned()),
        _ if database.parse::<u32>().is_err() && !database.is_empty() => {
            Some("the database is not a number".to_owned())
        }
        _ => None,
    }
}

/// The host of a server, and the user that connects.
#[derive(Debug, Clone)]
pub(super) struct Address {
    /// Who connects, and to which database.
    pub(super) settings: RedisConnectionInfo,
    pub(super) is_tls: bool,
    pub(super) host: Host,
    /// What stands in front of all keys in place of `dq`.
    pub(super) prefix: Option<String>,
    /// Who names the master, if it is not the host.
    pub(super) sentinels: Option<Sentinels>,
    /// The servers of a cluster to ask for the others.
    pub(super) seeds: Option<Vec<Host>>,
    /// If the URL asks for TLS.
    #[cfg(feature = "tls")]
    pub(super) certificates: Option<Certificates>,
    /// The URL without user and password.
    pub(super) masked: String,
}

impl Address {
    /// Parses a URL.
    pub(super) fn parse(url: &str) -> Result<Self, BadRedisUrl> {
        let malformed = |reason| BadRedisUrl::Malformed { url: masked_url(url), reason };
        let parts = url.split_once("://").and_then(|(scheme, rest)| Some((scheme.split_once('+')?, rest)));
        match parts {
            Some(((scheme, "sentinel"), rest)) => {
                let (sentinels, server) = sentinels_in(scheme, rest).map_err(malformed)?;
                Ok(Self { sentinels: Some(sentinels), ..Self::of_server(&server.url, server.masked)? })
            }
            Some(((scheme, "cluster"), rest)) => {
                let (seeds, server) = cluster_in(scheme, rest).map_err(malformed)?;
                Ok(Self { seeds: Some(seeds), ..Self::of_server(&server.url, server.masked)? })
            }
            _ => Self::of_server(url, masked_url(url)),
        }
    }

    /// Parses the URL of one server.
    fn of_server(url: &str, masked: String) -> Result<Self, BadRedisUrl> {
        let malformed = |reason: &str| BadRedisUrl::Malformed { url: masked.clone(), reason: reason.into() };
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(malformed("`://` must follow the scheme, as in redis://127.0.0.1"));
        };
        if !matches!(scheme, "redis" | "rediss") {
            return Err(malformed("the scheme is neither `redis` nor `rediss`"));
        }
        if rest.contains('#') {
            return Err(malformed(
                "nothing may follow `#`; dq always checks certificates, and `?ca=FILE` names the authority to trust",
            ));
        }
        let (plain, options) = url.split_once('?').unwrap_or((url, ""));
        if options.contains('@') {
            return Err(malformed("write `?` in a user or password as `%3F`"));
        }
        let bad_option = |reason| BadRedisUrl::Option { url: masked.clone(), reason };
        let (prefix, options) = prefix_of(options).map_err(bad_option)?;
        // Not quoted: it may be the end of a password with a `?` whose `@HOST` is missing.
        if scheme == "redis" && !options.is_empty() {
            return Err(bad_option("one of them is not an option of `redis`".to_owned()));
        }
        if scheme == "rediss" && !cfg!(feature = "tls") {
            return Err(BadRedisUrl::NoTls { url: masked });
        }
        let info = plain
            .into_connection_info()
            .map_err(|error| malformed(&wrong_part(plain).unwrap_or_else(|| error.category().to_owned())))?;
        let (host, is_tls) = match info.addr() {
            ConnectionAddr::Tcp(host, port) => ((host.clone(), *port), false),
            ConnectionAddr::TcpTls { host, port, .. } => ((host.clone(), *port), true),
            _ => return Err(malformed("it names no host")),
        };
        #[cfg(feature = "tls")]
        let certificates = is_tls.then(|| Certificates::read(&options)).transpose().map_err(bad_option)?;
        #[cfg(not(feature = "tls"))]
        debug_assert!(options.is_empty() && !is_tls, "without the feature there is no rediss");
        let masked = prefix.as_ref().map_or(masked.clone(), |prefix| format!("{masked}?prefix={prefix}"));
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        Ok(Self {
            settings: settings.set_skip_set_lib_name(),
            is_tls,
            host,
            prefix,
            sentinels: None,
            seeds: None,
            #[cfg(feature = "tls")]
            certificates,
            masked,
        })
    }
}

/// The URL of the first of several hosts alone, which says everything else.
struct ServerUrl {
    url: String,
    /// What errors and logs show of the whole one.
    masked: String,
}

/// A URL with several hosts, behind its scheme: `[USER:PASSWORD@]HOST[:PORT][,HOST..][/PATH][?OPTIONS]`.
struct HostsUrl<'a> {
    login: Option<&'a str>,
    hosts: Vec<Host>,
    path: &'a str,
    options: &'a str,
}

impl<'a> HostsUrl<'a> {
    fn parse(rest: &'a str, usual_port: u16, what: &str) -> Result<Self, String> {
        let (server, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, server) = server.rsplit_once('@').map_or((None, server), |(login, server)| (Some(login), server));
        let (hosts, path) = server.split_once('/').unwrap_or((server, ""));
        Ok(Self { login, hosts: hosts_in(hosts, usual_port, what)?, path, options })
    }

    /// The URL of the first host alone.
    fn of_first(&self, scheme: &str, database: &str, options: &str) -> String {
        let (host, port) = &self.hosts[0];
        let login = self.login.map(|login| format!("{login}@")).unwrap_or_default();
        format!("{scheme}://{login}{host}:{port}/{database}?{options}")
    }

    /// The hosts, without the login.
    fn masked(&self) -> String {
        let names: Vec<_> = self.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        let login = if self.login.is_some() { "***@" } else { "" };
        format!("{login}{}", names.join(","))
    }
}

/// Reads what follows `redis+sentinel://` or, for TLS, `rediss+sentinel://`. The path is `SERVICE[/DATABASE]`.
fn sentinels_in(scheme: &str, rest: &str) -> Result<(Sentinels, ServerUrl), String> {
    let url = HostsUrl::parse(rest, 26_379, "sentinel")?;
    let (service, database) = url.path.split_once('/').unwrap_or((url.path, ""));
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if service.is_empty() || !service.bytes().all(is_allowed) {
        return Err("it names no service: write redis+sentinel://HOST,HOST,HOST/SERVICE, with the name that the sentinels give their master".into());
    }
    let of = |name: &str| {
        let text = url.options.split('&').find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
        text.unwrap_or_default()
    };
    let (user, password) = (of("sentinel_user"), of("sentinel_password"));
    let asker = if user.is_empty() && password.is_empty() { String::new() } else { format!("{user}:{password}@") };
    let asker = format!("redis://{asker}sentinel").into_connection_info();
    let asker = asker.map_err(|_| "`sentinel_user` or `sentinel_password` cannot be read".to_owned())?;
    let kept: Vec<_> = url.options.split('&').filter(|option| !option.starts_with("sentinel_")).collect();
    let server = ServerUrl {
        url: url.of_first(scheme, database, &kept.join("&")),
        masked: format!("{scheme}+sentinel://{}/{service}", url.masked()),
    };
    let settings = asker.redis_settings().clone();
    Ok((Sentinels::new(url.hosts, service, settings), server))
}

/// Reads what follows `redis+cluster://` or, for TLS, `rediss+cluster://`: the servers to ask for the others.
fn cluster_in(scheme: &str, rest: &str) -> Result<(Vec<Host>, ServerUrl), String> {
    let url = HostsUrl::parse(rest, 6379, "server")?;
    if !matches!(url.path, "" | "0") {
        return Err("a cluster has no databases: end it after the last host".into());
    }
    let masked = format!("{scheme}+cluster://{}", url.masked());
    let server = ServerUrl { url: url.of_first(scheme, "", url.options), masked };
    Ok((url.hosts, server))
}

/// Hosts with commas between them, each with its port. An IPv6 address stands in brackets, which stay.
fn hosts_in(text: &str, usual_port: u16, what: &str) -> Result<Vec<Host>, String> {
    let host = |text: &str| {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("the port of a {what} is not a number from 1 to 65535"))?)
            }
            _ => (text, usual_port),
        };
        match host {
            "" => Err(format!("a {what} has no host")),
            // Not quoted: it may be a password whose `@HOST` is missing.
            host if host.contains(':') && !host.starts_with('[') => {
                Err(format!("the host of a {what} has a colon: write an IPv6 address in brackets"))
            }
            host => Ok((host.to_owned(), port)),
        }
    };
    text.split(',').map(host).collect()
}

/// The most bytes of a prefix.
const MAX_PREFIX: usize = 64;

/// The prefix among the options, and the other options.
fn prefix_of(options: &str) -> Result<(Option<String>, String), String> {
    let (of_prefix, others): (Vec<_>, Vec<_>) = options.split('&').partition(|option| option.starts_with("prefix="));
    let prefix = of_prefix.last().map(|option| option["prefix=".len()..].to_owned());
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    match &prefix {
        Some(text) if text.is_empty() || text.len() > MAX_PREFIX || !text.bytes().all(is_allowed) => {
            Err(format!("a prefix has 1 to {MAX_PREFIX} of the characters A-Z a-z 0-9 . _ : -"))
        }
        _ => Ok((prefix, others.join("&"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_password_and_database_are_read() {
        let address = Address::parse("redis://me:s%40cret@host:1234/5").unwrap();
        let settings = &address.settings;
        assert_eq!((settings.username(), settings.password(), settings.db()), (Some("me"), Some("s@cret"), 5));
        assert_eq!(address.host, ("host".to_owned(), 1234));
        assert_eq!(settings.protocol(), ProtocolVersion::RESP3);
    }

    #[test]
    fn secrets_are_masked_everywhere() {
        let address = Address::parse("redis://me:secret@host/2").unwrap();
        assert_eq!(address.masked, "redis://***@host/2");
        assert!(!format!("{address:?}").contains("secret"));
        let said = |url: &str| Address::parse(url).unwrap_err().to_string();
        let error = said("redis://me:secret@host/2?y=secret");
        assert!(!error.contains("secret") && error.contains("redis://***@host/2"), "{error}");
        assert!(error.contains("one of them is not an option of `redis`"), "{error}");
        for url in ["redis://me:se?cret@host/x", "rediss://me:se?cret=x@host"] {
            let error = said(url);
            assert!(!error.contains("cret") && error.contains("write `?` in a user or password as `%3F`"), "{error}");
        }
        for url in crate::store::SECRET_URLS {
            let said = Address::parse(url).map_or_else(|error| error.to_string(), |address| address.masked);
            assert!(!said.contains("secret"), "{url}: {said}");
        }
    }

    #[test]
    fn the_error_of_a_malformed_url_shows_the_right_form() {
        for (url, shown) in [("redis:/x", "redis:/***"), ("redis:me:secret@host", "redis:***"), ("redis:", "redis:***")]
        {
            let error = Address::parse(url).unwrap_err().to_string();
            let says =
                format!("`{shown}` is not the URL of a Redis server: `://` must follow the scheme, as in redis://");
            assert!(error.starts_with(&says) && !error.contains("secret"), "{error}");
        }
        for url in ["redis:host", "http://host", "redis://host/notanumber", "redis://"] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains("write redis://USER:PASSWORD@HOST:PORT/DATABASE"), "{url}: {error}");
        }
    }

    #[test]
    fn a_malformed_url_names_the_part_that_is_wrong() {
        for (url, part) in [
            ("redis://host:99999", "the port is not a number from 1 to 65535"),
            ("redis://me:secret@host:x/1", "the port is not a number"),
            ("redis://host/abc", "the database is not a number"),
            ("redis://", "it names no host"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(&format!("Redis server: {part}")) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_password_whose_host_is_missing_is_not_shown_as_a_port() {
        for url in [
            "redis://me:secret",
            "redis://:secret",
            "redis://me:secret/1",
            "redis://me:p@ss:secret",
            "redis://me:7/secret",
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret") && error.contains("where only HOST is required"), "{url}: {error}");
        }
    }

    #[test]
    fn a_prefix_is_short_and_has_no_braces() {
        let address = Address::parse("redis://me:secret@host/2?prefix=shop:eu-1").unwrap();
        assert_eq!(
            (address.prefix.as_deref(), &*address.masked),
            (Some("shop:eu-1"), "redis://***@host/2?prefix=shop:eu-1")
        );
        assert_eq!(Address::parse("redis://host").unwrap().prefix, None);
        for prefix in ["", "{x}", "a b", "a*", &"x".repeat(65)] {
            let error = Address::parse(&format!("redis://host?prefix={prefix}")).unwrap_err().to_string();
            assert!(error.contains("a prefix has 1 to 64 of the characters"), "{prefix}: {error}");
        }
        assert!(Address::parse(&format!("redis://host?prefix={}", "x".repeat(64))).is_ok());
    }

    #[cfg(feature = "tls")]
    #[test]
    fn certificates_must_be_readable_pem_files() {
        let said =
            |options: &str| Address::parse(&format!("rediss://me:secret@host/2?{options}")).unwrap_err().to_string();
        let is = |options: &str, reason: &str| {
            let said = said(options);
            assert!(
                said.starts_with(&format!("the options of `rediss://***@host/2` cannot be used: {reason}")),
                "{said}"
            );
            assert!(said.ends_with("(a client certificate), each a PEM file") && !said.contains("secret"), "{said}");
        };
        is("insecure=yes", "one of them is not an option");
        is("ca=/no/such/file", "`ca`: `/no/such/file` cannot be read: No such file");
        is("ca=Cargo.toml", "`ca`: `Cargo.toml` is not a PEM file");
        is("ca", "`ca`: `` cannot be read");
        assert!(Address::parse("rediss://host/").is_ok());
    }

    #[test]
    fn a_certificate_is_always_checked() {
        let said = Address::parse("rediss://host/#insecure").unwrap_err().to_string();
        assert!(said.contains("dq always checks certificates, and `?ca=FILE` names the authority to trust"), "{said}");
    }

    #[test]
    fn the_hosts_service_database_and_logins_of_sentinels_are_read() {
        let parsed = |rest: &str| sentinels_in("redis", rest).unwrap_or_else(|error| panic!("{rest}: {error}"));
        let (sentinels, server) =
            parsed("me:s%40cret@one,two:26380,[::1]/shop/2?prefix=eu&sentinel_user=s&sentinel_password=p%3Fw");
        let hosts = [("one", 26_379), ("two", 26_380), ("[::1]", 26_379)].map(|(host, port)| (host.to_owned(), port));
        assert_eq!((&*sentinels.hosts, &*sentinels.service), (&hosts[..], "shop"));
        assert_eq!((sentinels.settings.username(), sentinels.settings.password()), (Some("s"), Some("p?w")));
        assert_eq!(server.url, "redis://me:s%40cret@one:26379/2?prefix=eu");
        assert_eq!(server.masked, "redis+sentinel://***@one:26379,two:26380,[::1]:26379/shop");
        let (sentinels, server) = parsed("one/shop");
        assert_eq!((sentinels.settings.password(), server.url.as_str()), (None, "redis://one:26379/?"));
    }

    #[test]
    fn a_url_without_a_service_or_a_host_says_what_is_missing() {
        for (rest, says) in [
            ("one,two", "names no service"),
            ("one/", "names no service"),
            ("one/a b", "names no service"),
            ("one,/shop", "a sentinel has no host"),
            ("one:x/shop", "the port of a sentinel is not a number"),
            ("one:x:1/shop", "the host of a sentinel has a colon"),
        ] {
            let error = sentinels_in("redis", rest).err().unwrap_or_default();
            assert!(error.contains(says), "{rest}: {error}");
        }
    }

    #[test]
    fn the_servers_and_the_login_of_a_cluster_are_read() {
        let (seeds, server) = cluster_in("redis", "me:s%40cret@one,two:7000,[::1]/0?prefix=eu").expect("it is a URL");
        assert_eq!(seeds, [("one", 6379), ("two", 7000), ("[::1]", 6379)].map(|(host, port)| (host.to_owned(), port)));
        assert_eq!(server.url, "redis://me:s%40cret@one:6379/?prefix=eu");
        assert_eq!(server.masked, "redis+cluster://***@one:6379,two:7000,[::1]:6379");
        for (rest, says) in
            [("one/2", "has no databases"), ("one,", "a server has no host"), ("one:x", "the port of a server")]
        {
            let error = cluster_in("redis", rest).err().unwrap_or_default();
            assert!(error.contains(says), "{rest}: {error}");
        }
    }
}
