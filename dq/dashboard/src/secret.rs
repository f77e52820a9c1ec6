//! Random bytes, and the comparison of secrets.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

pub(crate) fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut random = [0; N];
    getrandom::fill(&mut random)?;
    Ok(random)
}

/// Bytes as a text that fits into a URL and a cookie.
pub(crate) fn text_of(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Compares in a time that says nothing about the texts but their lengths.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}
