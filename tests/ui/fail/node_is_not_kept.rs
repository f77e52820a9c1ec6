#![deny(warnings)]
use dq::prelude::*;

async fn start() -> Result<(), dq::Error> {
    ContextFactory::new("shop").store("memory:");
    ContextFactory::new("shop").store("memory:").start().await?;
    let dq = ContextFactory::new("shop").store("memory:").start().await?;
    dq.signals();
    Ok(())
}

fn main() {
    let _ = start;
}
