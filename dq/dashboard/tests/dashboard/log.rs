//! What the dashboard logs in a test.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What this thread logs as long as it lives.
pub(crate) struct Log {
    written: Written,
    _guard: DefaultGuard,
    _another: Dispatch,
}

impl Log {
    pub(crate) fn of_this_test() -> Self {
        let written = Written::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        // With one subscriber alone, `tracing` asks only that of the thread which comes to a line first: none, in other tests.
        let _another = Dispatch::new(NoSubscriber::new());
        Self { written, _guard: set_default(lines), _another }
    }

    /// The lines of the audit log so far.
    pub(crate) fn audits(&self) -> Vec<String> {
        let text = String::from_utf8(self.written.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains("dq_dashboard::audit")).map(str::to_owned).collect()
    }
}
