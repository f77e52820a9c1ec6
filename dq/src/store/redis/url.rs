//! `redis://[USER][:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://` for TLS. Secrets stay here: what others see is masked.

use redis::io::tcp::TcpSettings;
use redis::{ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

/// A URL that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRedisUrl {
    /// It is no such URL. Write `redis://USER:PASSWORD@HOST:PORT/DATABASE`; all but the host may be left out.
    #[error(
        "`{url}` is no URL of a Redis server ({reason}): expected redis://USER:PASSWORD@HOST:PORT/DATABASE, of which all but HOST may be left out"
    )]
    Malformed {
        /// The URL without secrets.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// It asks for TLS, which this dq was built without. Enable the feature `tls`.
    #[error("`{url}` needs TLS, which this dq was built without: enable its feature `tls`")]
    NoTls {
        /// The URL without secrets.
        url: String,
    },
}

/// Where a server is, and who connects.
#[derive(Debug, Clone)]
pub(super) struct Address {
    info: ConnectionInfo,
    masked: String,
}

impl Address {
    /// Understands a URL.
    pub(super) fn parse(url: &str) -> Result<Self, BadRedisUrl> {
        let masked = masked(url);
        let malformed = |reason: &str| BadRedisUrl::Malformed { url: masked.clone(), reason: reason.into() };
        let Some((scheme, rest)) = url.split_once("://") else { return Err(malformed("there is no `://`")) };
        if !matches!(scheme, "redis" | "rediss") {
            return Err(malformed("the scheme is neither `redis` nor `rediss`"));
        }
        if rest.contains(['?', '#']) {
            return Err(malformed("it has no options behind `?` or `#`"));
        }
        if scheme == "rediss" && !cfg!(feature = "tls") {
            return Err(BadRedisUrl::NoTls { url: masked });
        }
        let info = url.into_connection_info().map_err(|error| malformed(error.category()))?;
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        let settings = settings.set_skip_set_lib_name();
        let info = info.set_redis_settings(settings).set_tcp_settings(TcpSettings::default().set_nodelay(true));
        Ok(Self { info, masked })
    }

    pub(super) const fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// The URL without user and password.
    pub(super) fn masked(&self) -> String {
        self.masked.clone()
    }
}

/// The URL with `***` for who connects, and for everything behind the path, which may be a secret in the wrong place.
fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "***".into() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    match rest.rfind('@') {
        Some(at) => format!("{scheme}://***{}", &rest[at..]),
        None => format!("{scheme}://{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_password_and_database_are_read() {
        let address = Address::parse("redis://me:s%40cret@host:1234/5").unwrap();
        let settings = address.info().redis_settings();
        assert_eq!((settings.username(), settings.password(), settings.db()), (Some("me"), Some("s@cret"), 5));
        assert_eq!(address.info().addr().to_string(), "host:1234");
        assert_eq!(settings.protocol(), ProtocolVersion::RESP3);
        assert!(address.info().tcp_settings().nodelay());
    }

    #[test]
    fn secrets_are_masked_everywhere() {
        let address = Address::parse("redis://me:secret@host/2").unwrap();
        assert_eq!(address.masked(), "redis://***@host/2");
        assert!(!format!("{address:?}").contains("secret"));
        let error = Address::parse("redis://me:secret@host/x?y=secret").unwrap_err().to_string();
        assert!(!error.contains("secret") && error.contains("redis://***@host/x"), "{error}");
    }

    #[test]
    fn what_is_no_url_of_a_server_says_what_is() {
        for url in ["redis:host", "http://host", "redis://host/notanumber", "redis://host?db=2", "redis://"] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains("expected redis://USER:PASSWORD@HOST:PORT/DATABASE"), "{url}: {error}");
        }
    }
}
