//! The program `dq`.

fn main() {}
