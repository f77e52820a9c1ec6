//! The stream below the client library: it notes when bytes last came.
//!
//! A long answer on a slow link takes longer than any caller waits for one that does not come. So a caller gives a
//! request up only once no byte has come for that long either. With TLS the stream lies below TLS: a part of an
//! encrypted record is a sign of life, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio_util::io::InspectReader;

use crate::environment::{Boottime, Clock};

/// When bytes last came over a connection, in milliseconds of the node's clock.
#[derive(Debug, Clone)]
pub(super) struct LastByte(Arc<AtomicU64>);

/// Of a connection that is opened now.
impl Default for LastByte {
    fn default() -> Self {
        Self(Arc::new(millis().into()))
    }
}

impl LastByte {
    fn note(&self) {
        self.0.store(millis(), Ordering::Relaxed);
    }

    /// Whether bytes came just now, so that the connection need not be looked at before a request.
    pub(super) fn is_recent(&self) -> bool {
        self.silent_for() <= Duration::from_millis(1)
    }

    /// For how long no byte has come.
    pub(super) fn silent_for(&self) -> Duration {
        Duration::from_millis(millis().saturating_sub(self.0.load(Ordering::Relaxed)))
    }
}

fn millis() -> u64 {
    u64::try_from(Boottime.now().as_millis()).unwrap_or(u64::MAX)
}

/// A stream that notes when bytes come.
pub(super) fn timed<S: AsyncRead>(stream: S, last_byte: LastByte) -> InspectReader<S, impl FnMut(&[u8])> {
    InspectReader::new(stream, move |bytes: &[u8]| {
        if !bytes.is_empty() {
            last_byte.note();
        }
    })
}
