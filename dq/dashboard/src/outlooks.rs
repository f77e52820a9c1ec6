//! What the overview shows: a page of topics, and what falls due in each. All who look share what was read a moment ago, and one
//! request never makes more than 20 queries.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dq::inspect::{Bucket, Finding, Inspector, Scale, TopicSummary, TopicsPage};
use tokio::sync::Mutex;

use crate::failure::Failure;

/// The most queries of one read.
const MAX_QUERIES: usize = 20;

/// What the names of the topics cost.
const LISTING: usize = 2;

/// How long a page of topics counts as fresh. A long page leaves the next read, a moment later, its queries for the outlooks.
const FRESH: (Duration, Duration) = (Duration::from_millis(900), Duration::from_millis(2_400));

/// How long what is wrong with the store counts as fresh, and what it costs to examine it.
const FRESH_FINDINGS: Duration = Duration::from_secs(10);
const EXAMINING: usize = 2;

/// The most pages, and outlooks, that are kept.
const MAX_KEPT: (usize, usize) = (16, 256);

type Outlook = Arc<[Bucket]>;

#[derive(Debug, Default)]
pub(crate) struct Outlooks(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    pages: HashMap<Option<String>, (Instant, Arc<TopicsPage>)>,
    outlooks: HashMap<(String, Scale), (Instant, Outlook)>,
    /// What is wrong with the store as a whole.
    findings: Option<(Instant, Arc<[Finding]>)>,
}

/// A page of topics with their outlooks.
#[derive(Debug)]
pub(crate) struct Overview {
    pub(crate) page: Arc<TopicsPage>,
    /// In the order of the topics; `None`: not counted yet.
    pub(crate) outlooks: Vec<Option<Outlook>>,
    /// What is wrong with the store as a whole.
    pub(crate) findings: Arc<[Finding]>,
}

impl Outlooks {
    /// Reads a page of topics alone.
    pub(crate) async fn topics(&self, inspector: &Inspector, after: Option<&str>) -> Result<Arc<TopicsPage>, Failure> {
        Ok(self.0.lock().await.topics(inspector, after, Instant::now()).await?.0)
    }

    pub(crate) async fn read(
        &self,
        inspector: &Inspector,
        after: Option<&str>,
        scale: Scale,
    ) -> Result<Overview, Failure> {
        let mut kept = self.0.lock().await;
        let now = Instant::now();
        let (page, mut spent) = kept.topics(inspector, after, now).await?;
        let (findings, more) = kept.findings(inspector, now, spent).await?;
        spent += more;
        let mut stale: Vec<&TopicSummary> = page.topics.iter().filter(|topic| topic.delayed > topic.ready).collect();
        let age = |kept: &Kept, topic: &TopicSummary| {
            let read = kept.outlooks.get(&(topic.topic.to_string(), scale));
            read.map_or(Duration::MAX, |(read, _)| now.saturating_duration_since(*read))
        };
        stale.retain(|topic| age(&kept, topic) > FRESH.0);
        stale.sort_by_key(|topic| std::cmp::Reverse((age(&kept, topic), topic.delayed)));
        for topic in stale.into_iter().take(MAX_QUERIES.saturating_sub(spent)) {
            let counted = inspector.timeline_for(topic.topic.as_str(), scale, topic.store_time).await?;
            if kept.outlooks.len() >= MAX_KEPT.1 {
                kept.outlooks.clear();
            }
            kept.outlooks.insert((topic.topic.to_string(), scale), (now, counted.into()));
        }
        let of = |topic: &TopicSummary| match topic.delayed > topic.ready {
            true => kept.outlooks.get(&(topic.topic.to_string(), scale)).map(|(_, counted)| Arc::clone(counted)),
            false => Some(Arc::default()),
        };
        let outlooks = page.topics.iter().map(of).collect();
        Ok(Overview { page, outlooks, findings })
    }
}

impl Kept {
    /// What is wrong with the store, and how many queries that took: none while it is fresh, or where the read has none left for it.
    async fn findings(
        &mut self,
        inspector: &Inspector,
        now: Instant,
        spent: usize,
    ) -> Result<(Arc<[Finding]>, usize), Failure> {
        let is_fresh = |read: Instant| now.saturating_duration_since(read) <= FRESH_FINDINGS;
        if let Some((read, findings)) = &self.findings
            && (is_fresh(*read) || spent + EXAMINING > MAX_QUERIES)
        {
            return Ok((Arc::clone(findings), 0));
        }
        if spent + EXAMINING > MAX_QUERIES {
            return Ok((Arc::default(), 0));
        }
        let findings: Arc<[Finding]> = inspector.examine_store().await?.into();
        self.findings = Some((now, Arc::clone(&findings)));
        Ok((findings, EXAMINING))
    }

    /// A page of topics, and how many queries it took.
    async fn topics(
        &mut self,
        inspector: &Inspector,
        after: Option<&str>,
        now: Instant,
    ) -> Result<(Arc<TopicsPage>, usize), Failure> {
        let key = after.map(str::to_owned);
        if let Some((read, page)) = self.pages.get(&key) {
            let is_long = 2 * page.topics.len() + LISTING > MAX_QUERIES;
            let fresh = if is_long { FRESH.1 } else { FRESH.0 };
            if now.saturating_duration_since(*read) <= fresh {
                return Ok((Arc::clone(page), 0));
            }
        }
        let page = Arc::new(inspector.topics(after).await?);
        if self.pages.len() >= MAX_KEPT.0 {
            self.pages.clear();
        }
        self.pages.insert(key, (now, Arc::clone(&page)));
        let spent = LISTING + page.topics.len();
        Ok((page, spent))
    }
}
