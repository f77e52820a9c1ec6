//! Sentinel: which of several servers is the master now.
//!
//! Every new connection asks all sentinels at the same time and goes to the master that more than half of them name, so neither a sentinel that hangs
//! nor one that was cut off with an old master decides. The server must then say itself that it is a master: during a failover sentinels may still name the
//! old one. See "Guidelines for Redis clients with support for Redis Sentinel".

use std::io;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use redis::{Cmd, RedisConnectionInfo, RedisResult};

/// A host and its port.
pub(super) type Host = (String, u16);

/// The sentinels of a URL.
#[derive(Debug, Clone)]
pub(super) struct Sentinels {
    pub(super) hosts: Vec<Host>,
    pub(super) service: String,
    /// Who asks the sentinels.
    pub(super) settings: RedisConnectionInfo,
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
    named: Vec<Host>,
    why: Option<String>,
}

impl<'a> Votes<'a> {
    pub(super) const fn new(sentinels: &'a Sentinels) -> Self {
        Self { sentinels, named: Vec::new(), why: None }
    }

    fn votes_for(&self, master: &Host) -> usize {
        self.named.iter().filter(|named| *named == master).count()
    }

    /// One of them has answered. Returns the master once more than half of them name it.
    pub(super) fn count(&mut self, answer: RedisResult<Option<Host>>) -> Option<Host> {
        match answer {
            Ok(Some(master)) => {
                self.named.push(master.clone());
                return (2 * self.votes_for(&master) > self.sentinels.hosts.len()).then_some(master);
            }
            Ok(None) => self.why = Some(format!("the sentinels know no service `{}`", self.sentinels.service)),
            Err(error) => drop(self.why.get_or_insert_with(|| error.to_string())),
        }
        None
    }

    /// Which master most of those name that have answered.
    pub(super) fn most(&self) -> io::Result<Host> {
        let most = self.named.iter().max_by_key(|master| self.votes_for(master)).cloned();
        let why = self.why.as_deref().unwrap_or("none has answered in time");
        most.ok_or_else(|| io::Error::other(format!("no sentinel names a master: {why}")))
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

    #[test]
    fn the_master_is_the_one_that_more_than_half_of_the_sentinels_name() {
        let hosts = ["a", "b", "c"].map(|host| (host.to_owned(), 26_379)).into();
        let sentinels = Sentinels { hosts, service: "shop".into(), settings: RedisConnectionInfo::default() };
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
}
