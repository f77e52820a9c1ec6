//! Numbers of an export that follow a clock which is ahead of the clock of the store that imports them: fences, positions of follow-ups and
//! orders in groups. A store refuses them (rule 9): what follows them would not follow its clock any more.

use std::collections::BTreeMap;
use std::fmt;

use dq::job::limits::{FENCE, Limit, ORDER, POSITION};
use dq::job::{Fence, Metadata, TopicName};
use dq::store::{MAX_AHEAD, OutboxEntry, OutboxPosition, check_ahead};

/// Checks such numbers, and cuts them back if it may.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// The store's clock when the import began, in µs.
    clock: u64,
    may_cut: bool,
    cut: Cut,
    /// The last follow-ups of each source for each target: their place in the export, and their position here.
    last: BTreeMap<(TopicName, TopicName), (u64, OutboxPosition)>,
}

/// What was cut back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cut {
    /// How many numbers.
    pub numbers: u64,
    /// By how much: the first of them became the store's clock. The others are cut by as much, so they keep their order.
    by: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = self.by / 1_000_000;
        write!(
            f,
            "{} numbers (fences, positions of follow-ups, orders in groups) were more than a day ahead of the store's clock, and were cut \
             back by {by} seconds",
            self.numbers
        )
    }
}

impl Ahead {
    pub(crate) fn new(clock: u64, may_cut: bool) -> Self {
        Self { clock, may_cut, cut: Cut::default(), last: BTreeMap::new() }
    }

    pub(crate) const fn cut(&self) -> Cut {
        self.cut
    }

    /// The number that comes in.
    fn number(&mut self, limit: Limit, number: u64) -> Result<u64, String> {
        let within = limit.check(number).map_err(|over| over.to_string());
        let checked = within.and_then(|()| check_ahead(limit, number, self.clock).map_err(|ahead| ahead.to_string()));
        match checked {
            Err(_) if self.may_cut && number > self.clock => {
                if self.cut.numbers == 0 {
                    self.cut.by = number - self.clock;
                }
                self.cut.numbers += 1;
                Ok(number.saturating_sub(self.cut.by).clamp(limit.least, self.clock.saturating_add(MAX_AHEAD)))
            }
            checked => checked.map(|()| number),
        }
    }

    /// The fence of a topic.
    pub(crate) fn fence(&mut self, fence: u64) -> Result<Fence, String> {
        self.number(FENCE, fence).map(Fence)
    }

    /// The numbers of a job. A parking fence is only compared with others, so it may be ahead.
    pub(crate) fn metadata(&mut self, metadata: &mut Metadata) -> Result<(), String> {
        metadata.group_order =
            self.number(ORDER, metadata.group_order).map_err(|why| format!("`group_order`: {why}"))?;
        if let Some(fence) = metadata.parked_by.filter(|fence| self.may_cut && FENCE.check(fence.0).is_err()) {
            metadata.parked_by = Some(self.fence(fence.0)?);
        }
        Ok(())
    }

    /// Follow-ups. Those of a source for a target stay in their order.
    pub(crate) fn entry(&mut self, source: &TopicName, entry: OutboxEntry) -> Result<OutboxEntry, String> {
        let (was, after) = (entry.position.at, entry.after.at);
        if after >= was {
            return Err(format!("`after` is {after}, which is not before `position`, {was}"));
        }
        let key = (source.clone(), entry.target.clone());
        let last = self.last.get(&key).copied();
        let cut = self.number(POSITION, was)?;
        let at = last.map_or(cut, |(last, here)| if last < was { cut.max(here.at + 1) } else { cut });
        let position = OutboxPosition { at, written: entry.position.written.min(at) };
        let after = match last {
            Some((last, here)) if last == after => here,
            _ => {
                let at = after.min(at.saturating_sub(1));
                OutboxPosition { at, written: if at == after { entry.after.written } else { at } }
            }
        };
        self.last.insert(key, (was, position));
        Ok(OutboxEntry { position, after, ..entry })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use dq::store::Packed;

    use super::*;

    const NOW: u64 = 1_763_000_000_000_000;

    fn entry(position: u64, after: u64) -> OutboxEntry {
        let batch = Packed::from_bytes(Bytes::from_static(b"d"));
        let [position, after] = [position, after].map(OutboxPosition::clock);
        OutboxEntry { target: TopicName::new("mail").unwrap(), position, after, batch }
    }

    #[test]
    fn numbers_up_to_a_day_ahead_stay_and_later_ones_are_refused_or_cut_back_in_their_order() {
        let source = TopicName::new("orders").unwrap();
        let far = NOW + 400 * MAX_AHEAD;
        let mut strict = Ahead::new(NOW, false);
        assert_eq!(strict.fence(NOW + MAX_AHEAD), Ok(Fence(NOW + MAX_AHEAD)));
        let refused = strict.fence(NOW + MAX_AHEAD + 1).unwrap_err();
        assert!(
            refused.contains(&(NOW + MAX_AHEAD + 1).to_string()) && refused.contains(&NOW.to_string()),
            "{refused}"
        );
        assert!(strict.entry(&source, entry(far, 0)).is_err());
        for (position, after) in [(0, 0), (7, 7), (7, 8), (u64::MAX, 0), (i64::MAX as u64, 0)] {
            assert!(strict.entry(&source, entry(position, after)).is_err(), "{position} {after}");
        }

        let mut cuts = Ahead::new(NOW, true);
        assert_eq!(cuts.fence(far), Ok(Fence(NOW)));
        let near = cuts.entry(&source, entry(NOW - 5, 0)).unwrap();
        let first = cuts.entry(&source, entry(far - 9, NOW - 5)).unwrap();
        let second = cuts.entry(&source, entry(far + 3, far - 9)).unwrap();
        assert_eq!((near.position.at, first.after, second.after), (NOW - 5, near.position, first.position));
        assert!(near.position < first.position && first.position < second.position && second.position.at <= NOW + 3);
        let mut metadata =
            Metadata { group_order: far + 8, parked_by: Some(Fence(FENCE.last())), ..Metadata::default() };
        cuts.metadata(&mut metadata).unwrap();
        assert_eq!(metadata.group_order, NOW + 8);
        assert!(metadata.parked_by.is_some_and(|fence| FENCE.check(fence.0).is_ok()));
        assert_eq!(cuts.cut().numbers, 5);
        assert!(cuts.cut().to_string().ends_with("cut back by 34560000 seconds"), "{}", cuts.cut());
        // What no clock has given out is cut as well.
        assert_eq!(cuts.entry(&source, entry(u64::MAX, 0)).unwrap().position.at, NOW + MAX_AHEAD);
    }
}
