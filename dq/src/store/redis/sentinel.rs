//! Sentinel: which of several servers is the master now.
//!
//! Every new connection asks all sentinels at the same time and goes to the master that more than half of them name, so neither a sentinel that hangs
//! nor one that was cut off with an old master decides. Fewer may confirm the server that was used last, and lead to no other. The server must then say
//! itself that it is a master: during a failover sentinels may still name the old one. See "Guidelines for Redis clients with support for Redis Sentinel".

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use redis::{Cmd, RedisConnectionInfo, RedisResult};

use super::words::words_of;

/// A host and its port.
pub(super) type Host = (String, u16);

/// The sentinels of a URL.
#[derive(Debug, Clone)]
pub(super) struct Sentinels {
    pub(super) hosts: Vec<Host>,
    pub(super) service: String,
    /// Who asks the sentinels.
    pub(super) settings: RedisConnectionInfo,
    /// The server that was used last.
    last: Arc<Mutex<Option<Host>>>,
}

/// The next answer of several servers; `None` if there is none, or it is too late. One that is there when it is too late comes first.
pub(super) async fn next_in_time<A: Future>(
    asked: &mut FuturesUnordered<A>,
    too_late: &mut BoxFuture<'_, ()>,
) -> Option<A::Output> {
    tokio::select! {
        biased;
        answer = asked.next() => answer,
        () = too_late => None,
    }
}

impl Sentinels {
    pub(super) fn new(hosts: Vec<Host>, service: &str, settings: RedisConnectionInfo) -> Self {
        Self { hosts, service: service.to_owned(), settings, last: Arc::default() }
    }

    /// This server says that it is a master.
    pub(super) fn used(&self, master: Host) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(master);
    }

    fn last(&self) -> Option<Host> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
    /// Who has answered, and which master it names.
    answered: Vec<(&'a Host, Option<Host>)>,
    why: Option<String>,
}

impl<'a> Votes<'a> {
    pub(super) const fn new(sentinels: &'a Sentinels) -> Self {
        Self { sentinels, answered: Vec::new(), why: None }
    }

    fn votes_for(&self, master: &Host) -> usize {
        self.answered.iter().filter(|(_, named)| named.as_ref() == Some(master)).count()
    }

    /// One of them has answered. Returns the master once more than half of them name it.
    pub(super) fn count(&mut self, sentinel: &'a Host, answer: RedisResult<Option<Host>>) -> Option<Host> {
        match answer {
            Ok(named) => {
                if named.is_none() {
                    self.why = Some(format!("the sentinels know no service `{}`", self.sentinels.service));
                }
                self.answered.push((sentinel, named.clone()));
                named.filter(|master| 2 * self.votes_for(master) > self.sentinels.hosts.len())
            }
            Err(error) => {
                self.why.get_or_insert_with(|| words_of(&error));
                None
            }
        }
    }

    /// The server that was used last, if any of them still names it. One that was cut off with an old master leads nowhere else.
    ///
    /// # Errors
    /// It was another one, or none yet: who has not answered.
    pub(super) fn confirmed(&self) -> io::Result<Host> {
        let last = self.sentinels.last();
        last.filter(|last| self.votes_for(last) > 0).ok_or_else(|| io::Error::other(self.too_few()))
    }

    fn too_few(&self) -> String {
        let named = self.answered.iter().filter_map(|(_, named)| named.as_ref());
        let (votes, all) = (named.map(|master| self.votes_for(master)).max(), self.sentinels.hosts.len());
        let is_silent = |host: &&Host| !self.answered.iter().any(|(answered, _)| answered == host);
        let silent: Vec<_> =
            self.sentinels.hosts.iter().filter(is_silent).map(|(host, port)| format!("{host}:{port}")).collect();
        let mut text = match votes {
            Some(votes) => format!("{votes} of {all} sentinels name the same master, and more than half of them must"),
            None => "no sentinel names a master".to_owned(),
        };
        if !silent.is_empty() {
            text += &format!("; no answer in time from {}", silent.join(", "));
        }
        if let Some(why) = &self.why {
            text += &format!(": {why}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_there_when_it_is_too_late_counts() {
        let mut asked: FuturesUnordered<_> = [std::future::ready(1)].into_iter().collect();
        let mut too_late: BoxFuture<'_, ()> = Box::pin(async {});
        assert_eq!(next_in_time(&mut asked, &mut too_late).await, Some(1));
        assert_eq!(next_in_time(&mut asked, &mut too_late).await, None);
    }

    fn three() -> Sentinels {
        let hosts = ["a", "b", "c"].map(|host| (host.to_owned(), 26_379)).into();
        Sentinels::new(hosts, "shop", RedisConnectionInfo::default())
    }

    fn server(host: &str) -> Host {
        (host.to_owned(), 6379)
    }

    fn named(host: &str) -> RedisResult<Option<Host>> {
        Ok(Some(server(host)))
    }

    #[test]
    fn the_master_is_the_one_that_more_than_half_of_the_sentinels_name() {
        let sentinels = three();
        let [a, b, c] = &sentinels.hosts[..] else { panic!("three") };
        let mut votes = Votes::new(&sentinels);
        assert_eq!([votes.count(a, named("old")), votes.count(b, named("new"))], [None, None]);
        assert_eq!(votes.count(c, named("new")), Some(server("new")));
        let mut votes = Votes::new(&sentinels);
        votes.count(a, Ok(None));
        votes.count(b, Err(io::Error::other("refused").into()));
        assert_eq!(
            votes.confirmed().unwrap_err().to_string(),
            "no sentinel names a master; no answer in time from b:26379, c:26379: the sentinels know no service `shop`"
        );
    }

    #[test]
    fn fewer_than_half_of_the_sentinels_confirm_the_server_that_was_used_last_and_lead_to_no_other() {
        let sentinels = three();
        let one = |named: RedisResult<Option<Host>>| {
            let mut votes = Votes::new(&sentinels);
            assert_eq!(votes.count(&sentinels.hosts[0], named), None);
            votes.confirmed().map_err(|error| error.to_string())
        };
        let refused = "1 of 3 sentinels name the same master, and more than half of them must; no answer in time from \
                       b:26379, c:26379";
        assert_eq!(one(named("old")), Err(refused.to_owned()), "a first start says who did not answer");
        sentinels.used(server("old"));
        assert_eq!(one(named("old")), Ok(server("old")));
        assert_eq!(one(named("new")), Err(refused.to_owned()));
        assert!(one(Ok(None)).is_err());
    }
}
