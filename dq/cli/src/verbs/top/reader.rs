//! What `dq top` reads, with 20 commands of the store at most.

use dq::inspect::{Inspector, TopicSummary, TopicsPage};

/// How many topics a page has: the selected one takes two commands more.
const TOPICS: usize = 16;

/// Which topics to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The name behind which the page begins.
    pub after: Option<String>,
    /// The topic whose nodes are shown.
    pub selected: Option<String>,
}

/// What was read, and what was wanted.
#[derive(Debug)]
pub struct Seen {
    /// What was wanted.
    pub wanted: Wanted,
    /// A page of topics, with the selected one and its nodes; or why there is none.
    pub page: Result<(TopicsPage, Option<TopicSummary>), String>,
}

/// Reads a page and the selected topic.
pub async fn read(inspector: &Inspector, wanted: Wanted) -> Seen {
    let page = async {
        let page = inspector.topics_up_to(TOPICS, wanted.after.as_deref()).await?;
        let first = || page.topics.first().map(|topic| topic.topic.to_string());
        let selected = match wanted.selected.clone().or_else(first) {
            Some(selected) => {
                match page.topics.iter().find(|topic| topic.error.is_some() && topic.topic.as_str() == selected) {
                    Some(unreadable) => Some(unreadable.clone()),
                    None => Some(inspector.topic(&selected).await?),
                }
            }
            None => None,
        };
        Ok((page, selected))
    };
    let page = page.await.map_err(|error: dq::provider::CallError| dq::Error::from(error).to_string());
    Seen { wanted, page }
}
