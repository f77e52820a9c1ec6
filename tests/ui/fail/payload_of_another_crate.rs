use dq::prelude::*;

#[delay_listener]
async fn close(job: Job<String>) -> Result<(), JobError> {
    let _ = job.len();
    Ok(())
}

fn main() {}
