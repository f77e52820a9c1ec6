//! Says which change is made. Only a copy of the tree has this module.

use std::sync::LazyLock;
use std::time::Duration;

static NUMBER: LazyLock<u32> =
    LazyLock::new(|| std::env::var("VARIABLE").ok().and_then(|number| number.parse().ok()).unwrap_or(0));

const SCRIPTS: &[(u32, &str)] = &[
    // SCRIPTS
];

pub(crate) fn is(number: u32) -> bool {
    *NUMBER == number
}

pub(crate) trait Beside {
    fn other(self) -> Self;
}

macro_rules! numbers {
    ($($number:ty)+) => { $(impl Beside for $number { fn other(self) -> Self { self.wrapping_add(1) } })+ };
}

numbers!(u8 u16 u32 u64 u128 usize i32 i64);

impl Beside for Duration {
    fn other(self) -> Self {
        self.saturating_add(self)
    }
}

impl Beside for bool {
    fn other(self) -> Self {
        !self
    }
}

impl Beside for &str {
    fn other(self) -> Self {
        ""
    }
}

pub(crate) fn beside<T: Beside>(number: u32, value: T) -> T {
    if is(number) { value.other() } else { value }
}

pub(crate) fn script(text: String) -> String {
    let Some((_, after)) = SCRIPTS.iter().find(|(number, _)| is(*number)) else { return text };
    let (open, close) = (format!("--[[change {}]]", *NUMBER), format!("--[[end {}]]", *NUMBER));
    let mut result = String::new();
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once(&open) {
        let (_, behind) = behind.split_once(&close).unwrap_or((behind, ""));
        result.push_str(before);
        result.push_str(after);
        rest = behind;
    }
    result.push_str(rest);
    result
}
