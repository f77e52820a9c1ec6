//! The checks of metadata and records by the table of [limits](super::limits).

use super::limits::{CONTROLS, ERROR, FENCE, HEADERS, ORDER, OverLimit, PAYLOAD, RETRY, STATE};
use super::metadata::{InvalidRecord, Metadata};
use super::record::Record;
use super::state::State;

impl Metadata {
    /// Checks the texts, the state and the order. [`decode`](Self::decode) calls it, so it holds for whatever comes out of a store.
    pub(super) fn check_texts(&self) -> Result<(), OverLimit> {
        let length = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() as u64);
        ORDER.check_kept(self.group_order)?;
        HEADERS.check(self.headers_length())?;
        RETRY.check(length(&self.retry))?;
        ERROR.check(length(&self.error))?;
        STATE.check(self.left().map_or(0, |left| left.as_bytes().len() as u64))
    }

    /// What the headers count.
    pub(super) fn headers_length(&self) -> u64 {
        self.headers.iter().map(|(name, value)| 4 + name.len() as u64 + value.len() as u64).sum()
    }

    /// Checks what a caller has chosen: the sizes, and that no header has a character that acts on a terminal or ends a line of
    /// a log or of a protocol.
    ///
    /// # Errors
    /// [`OverLimit`].
    #[doc(hidden)]
    pub fn check_new(&self) -> Result<(), OverLimit> {
        self.check_texts()?;
        ORDER.check(self.group_order)?;
        let texts = self.headers.iter().flat_map(|(name, value)| [name, value]);
        let controls = texts.flat_map(|text| text.bytes()).filter(|byte| b"\0\r\n\x1b".contains(byte));
        CONTROLS.check(controls.count() as u64)
    }
}

impl Record {
    /// Reads the metadata of a record that a store had, and checks all of it.
    ///
    /// # Errors
    /// [`InvalidRecord`] if this version of dq cannot read the record, or if it is over a limit of the format.
    #[doc(hidden)]
    pub fn checked(&self) -> Result<Metadata, InvalidRecord> {
        PAYLOAD.check(self.split()?.1.len() as u64 - 1)?; // without the codec
        self.metadata()
    }

    /// Why no node would run a job with this record because of a limit; a DEAD job has its payload for people.
    pub(crate) fn over_limit(&self, state: State) -> Option<OverLimit> {
        let checked = if state == State::Dead { self.metadata() } else { self.checked() };
        match checked {
            Err(InvalidRecord::OverLimit(over)) => Some(over),
            _ => None,
        }
    }

    /// Checks a record that comes into a store. One that this version of dq cannot read may: an export keeps what another one wrote.
    ///
    /// # Errors
    /// [`OverLimit`].
    #[doc(hidden)]
    pub fn check_new(&self) -> Result<(), OverLimit> {
        FENCE.check(self.fixed().parked_by.unwrap_or_default().0)?;
        match self.checked() {
            Ok(metadata) => metadata.check_new(),
            Err(InvalidRecord::OverLimit(over)) => Err(over),
            Err(_) => PAYLOAD.check(self.as_bytes().len() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Codec;

    /// The encoder is total: what no door lets in loses the text that is too long, and nothing else.
    #[test]
    fn metadata_over_a_limit_become_bytes_without_that_text() {
        let long = |length: usize| "x".repeat(length);
        let over = [
            Metadata { headers: vec![("a".into(), long(65_000))], ..Metadata::default() },
            Metadata { retry: Some(long(70_000)), ..Metadata::default() },
            Metadata { headers: vec![(long(5_000), long(5_000)), (long(1 << 20), long(5))], ..Metadata::default() },
        ];
        for metadata in over {
            let metadata = Metadata { attempts: 3, error: Some("boom".into()), ..metadata };
            let read = Record::new(&metadata, Codec::Json, b"1").metadata();
            assert_eq!(read, Ok(Metadata { headers: Vec::new(), retry: None, ..metadata }));
        }
        let error = Some("é".repeat(5_000));
        let read = Record::new(&Metadata { error, ..Metadata::default() }, Codec::Json, b"1").metadata().unwrap();
        assert_eq!(read.error, Some("é".repeat(2_048)));
        let at_the_limits = Metadata {
            headers: vec![(long(4_000), long((8 << 10) - 4_004))],
            retry: Some(long(4 << 10)),
            error: Some(long(4 << 10)),
            ..Metadata::default()
        };
        assert_eq!(Record::new(&at_the_limits, Codec::Json, b"1").metadata(), Ok(at_the_limits));
    }
}
