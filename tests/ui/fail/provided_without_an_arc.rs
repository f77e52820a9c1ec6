use dq::prelude::*;

#[derive(Default)]
struct Db;

fn main() {
    let _ = ContextFactory::new("shop").provide(Db::default());
}
