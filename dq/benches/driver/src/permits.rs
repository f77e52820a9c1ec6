//! What the tasks of a benchmark wait for.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Permits that tasks add and take, such as one for each run.
#[derive(Debug, Clone)]
pub struct Permits(Arc<Semaphore>);

impl Permits {
    /// Begins with so many.
    pub fn of(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Adds so many.
    pub fn add(&self, count: usize) {
        self.0.add_permits(count);
    }

    /// Waits for so many, and takes them.
    pub async fn take(&self, count: usize) {
        self.0.acquire_many(count as u32).await.unwrap().forget();
    }
}
