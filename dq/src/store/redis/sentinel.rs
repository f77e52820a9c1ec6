//! Sentinel: which of several servers is the master now.
//!
//! Every new connection asks all sentinels at the same time and goes to the master that more than half of them name, so neither a sentinel that hangs
//! nor one that was cut off with an old master decides. The server must then say itself that it is a master: during a failover sentinels may still name the
//! old one. See "Guidelines for Redis clients with support for Redis Sentinel".

use std::io;

use redis::{Cmd, IntoConnectionInfo, RedisConnectionInfo, RedisResult};

/// The port of a sentinel whose host names none.
const PORT: u16 = 26_379;

/// A host and its port.
pub(super) type Host = (String, u16);

/// The sentinels of a URL.
#[derive(Debug, Clone)]
pub(super) struct Sentinels {
    hosts: Vec<Host>,
    service: String,
    /// Who asks the sentinels.
    settings: RedisConnectionInfo,
}

/// A URL with sentinels.
pub(super) struct SentinelUrl {
    pub(super) sentinels: Sentinels,
    /// The same URL with the first sentinel in place of the master, which says everything else.
    pub(super) plain: String,
    /// What errors and logs show.
    pub(super) masked: String,
}

impl SentinelUrl {
    /// Reads what follows `redis+sentinel://` or, for TLS, `rediss+sentinel://`: `[USER:PASSWORD@]HOST[:PORT][,HOST..]/SERVICE[/DATABASE][?OPTIONS]`.
    pub(super) fn parse(scheme: &str, rest: &str) -> Result<Self, String> {
        let (server, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, server) = server.rsplit_once('@').map_or((None, server), |(login, server)| (Some(login), server));
        let (hosts, path) = server.split_once('/').unwrap_or((server, ""));
        let (service, database) = path.split_once('/').unwrap_or((path, ""));
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if service.is_empty() || !service.bytes().all(is_allowed) {
            return Err("it names no service: write redis+sentinel://HOST,HOST,HOST/SERVICE, with the name that the sentinels give their master".into());
        }
        let hosts = hosts_in(hosts, PORT, "sentinel")?;
        let of = |name: &str| {
            let text = options.split('&').find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
            text.unwrap_or_default().to_owned()
        };
        let (user, password) = (of("sentinel_user"), of("sentinel_password"));
        let asker = if user.is_empty() && password.is_empty() { String::new() } else { format!("{user}:{password}@") };
        let asker = format!("redis://{asker}sentinel").into_connection_info();
        let asker = asker.map_err(|_| "`sentinel_user` or `sentinel_password` cannot be read".to_owned())?;
        let kept = options.split('&').filter(|option| !option.starts_with("sentinel_")).collect::<Vec<_>>().join("&");
        let (first, port) = &hosts[0];
        let login_as = |shown: &str| if login.is_some() { format!("{shown}@") } else { String::new() };
        let names = hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect::<Vec<_>>().join(",");
        Ok(Self {
            masked: format!("{scheme}+sentinel://{}{names}/{service}", login_as("***")),
            plain: format!("{scheme}://{}{first}:{port}/{database}?{kept}", login_as(login.unwrap_or_default())),
            sentinels: Sentinels { hosts, service: service.to_owned(), settings: asker.redis_settings().clone() },
        })
    }
}

/// Hosts with commas between them, each with its port. An IPv6 address stands in brackets, which stay.
pub(super) fn hosts_in(text: &str, usual_port: u16, what: &str) -> Result<Vec<Host>, String> {
    let host = |text: &str| {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("the port of a {what} is not a number from 1 to 65535"))?)
            }
            _ => (text, usual_port),
        };
        if host.is_empty() { Err(format!("a {what} has no host")) } else { Ok((host.to_owned(), port)) }
    };
    text.split(',').map(host).collect()
}

impl Sentinels {
    pub(super) fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    pub(super) const fn settings(&self) -> &RedisConnectionInfo {
        &self.settings
    }

    /// What to ask each of them.
    pub(super) fn question(&self) -> Cmd {
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.service);
        ask
    }
}

/// What the sentinels have answered.
#[derive(Debug)]
pub(super) struct Votes<'a> {
    sentinels: &'a Sentinels,
    masters: Vec<(Host, usize)>,
    why: Option<String>,
}

impl<'a> Votes<'a> {
    pub(super) const fn new(sentinels: &'a Sentinels) -> Self {
        Self { sentinels, masters: Vec::new(), why: None }
    }

    /// One of them has answered. Returns the master once more than half of them name it.
    pub(super) fn count(&mut self, answer: RedisResult<Option<Host>>) -> Option<Host> {
        let master = match answer {
            Ok(Some(master)) => master,
            Ok(None) => {
                self.why = Some(format!("the sentinels know no service `{}`", self.sentinels.service));
                return None;
            }
            Err(error) => {
                self.why.get_or_insert_with(|| error.to_string());
                return None;
            }
        };
        let votes = match self.masters.iter_mut().find(|(known, _)| *known == master) {
            Some((_, votes)) => {
                *votes += 1;
                *votes
            }
            None => {
                self.masters.push((master.clone(), 1));
                1
            }
        };
        (2 * votes > self.sentinels.hosts.len()).then_some(master)
    }

    /// Which master most of those name that have answered.
    pub(super) fn most(self) -> io::Result<Host> {
        let most = self.masters.into_iter().max_by_key(|(_, votes)| *votes).map(|(master, _)| master);
        let why = self.why.unwrap_or_else(|| "none has answered in time".into());
        most.ok_or_else(|| io::Error::other(format!("no sentinel names a master: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(rest: &str) -> SentinelUrl {
        SentinelUrl::parse("redis", rest).unwrap_or_else(|error| panic!("{rest}: {error}"))
    }

    #[test]
    fn hosts_service_database_and_logins_are_read() {
        let url = parsed("me:s%40cret@one,two:26380,[::1]/shop/2?prefix=eu&sentinel_user=s&sentinel_password=p%3Fw");
        let hosts = [("one", 26_379), ("two", 26_380), ("[::1]", 26_379)].map(|(host, port)| (host.to_owned(), port));
        assert_eq!((&*url.sentinels.hosts, &*url.sentinels.service), (&hosts[..], "shop"));
        assert_eq!((url.sentinels.settings.username(), url.sentinels.settings.password()), (Some("s"), Some("p?w")));
        assert_eq!(url.plain, "redis://me:s%40cret@one:26379/2?prefix=eu");
        assert_eq!(url.masked, "redis+sentinel://***@one:26379,two:26380,[::1]:26379/shop");
        let plain = parsed("one/shop");
        assert_eq!((plain.sentinels.settings.password(), plain.plain.as_str()), (None, "redis://one:26379/?"));
    }

    #[test]
    fn the_master_is_the_one_that_more_than_half_of_the_sentinels_name() {
        let sentinels = parsed("a,b,c/shop").sentinels;
        let named = |host: &str| Ok(Some((host.to_owned(), 6379)));
        let mut votes = Votes::new(&sentinels);
        assert_eq!([votes.count(named("old")), votes.count(named("new"))], [None, None]);
        assert_eq!(votes.count(named("new")).unwrap().0, "new");
        let mut votes = Votes::new(&sentinels);
        votes.count(named("only"));
        assert_eq!(votes.most().unwrap().0, "only", "the others have not answered");
        let mut votes = Votes::new(&sentinels);
        votes.count(Ok(None));
        votes.count(Err(io::Error::other("refused").into()));
        assert_eq!(
            votes.most().unwrap_err().to_string(),
            "no sentinel names a master: the sentinels know no service `shop`"
        );
    }

    #[test]
    fn a_url_without_a_service_or_a_host_says_what_is_missing() {
        for (rest, says) in [
            ("one,two", "names no service"),
            ("one/", "names no service"),
            ("one/a b", "names no service"),
            ("one,/shop", "a sentinel has no host"),
            ("one:x/shop", "the port of a sentinel is not a number"),
        ] {
            let error = SentinelUrl::parse("redis", rest).err().unwrap_or_default();
            assert!(error.contains(says), "{rest}: {error}");
        }
    }
}
