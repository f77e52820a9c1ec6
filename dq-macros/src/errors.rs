//! The mistakes of an attribute: one compile reports all of them, each at its place.

use std::fmt::Display;

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Notes a mistake at its tokens. The text says what to write instead.
    pub(crate) fn at(&mut self, place: impl ToTokens, text: impl Display) {
        self.add(syn::Error::new_spanned(place, text));
    }

    /// Notes an error that syn found.
    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Whether there is a mistake.
    pub(crate) const fn any(&self) -> bool {
        self.0.is_some()
    }

    /// A `compile_error!` for each mistake.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.map_or_else(TokenStream::new, syn::Error::into_compile_error)
    }
}

#[cfg(test)]
impl Errors {
    /// The texts of the mistakes, in the order in which they were noted.
    pub(crate) fn texts(self) -> Vec<String> {
        self.0.into_iter().flatten().map(|error| error.to_string()).collect()
    }
}

/// The candidate that `word` probably misspells.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = dq_grammar::present_name(word);
    let rated = candidates.into_iter().map(|candidate| (strsim::jaro_winkler(word, candidate), candidate));
    let near = |candidate: &str| word.len() >= 5 && strsim::osa_distance(word, candidate) <= 2;
    let likely = rated.filter(|(likeness, candidate)| *likeness > 0.8 || near(candidate));
    likely.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, candidate)| candidate)
}

/// `` `a`, `b` or `c` ``.
pub(crate) fn listed<'a>(words: impl IntoIterator<Item = &'a str>, last: &str) -> String {
    let quoted: Vec<_> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((only, [])) => only.clone(),
        Some((end, before)) => format!("{} {last} {end}", before.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_is_recognised_and_another_word_is_not() {
        assert_eq!(nearest("topc", ["timeout", "topic"]), Some("topic"));
        assert_eq!(nearest("tipoc", ["timeout", "topic"]), Some("topic"));
        assert_eq!(
            nearest("final_retry", ["timeout", "on_exhausted"]),
            Some("on_exhausted"),
            "as the source documents say"
        );
        assert_eq!(nearest("priority", ["timeout", "topic"]), None);
    }

    #[test]
    fn a_list_reads_as_a_sentence() {
        assert_eq!(listed(["a"], "or"), "`a`");
        assert_eq!(listed(["a", "b", "c"], "or"), "`a`, `b` or `c`");
    }
}
