//! How much of what repeats itself a run tries: `tests/run --long` tries all of it.

/// Of places that are alike, such as the bits of a file, each one in a long run, and each `n`th one in a short run. A prime number that does not
/// divide the size of a unit meets each place within the units.
pub fn each(n: usize) -> usize {
    if std::env::var_os("DQ_LONG").is_some() { 1 } else { n }
}
