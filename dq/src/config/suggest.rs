//! Suggestions: the known name nearest to a wrong one.

/// The known name nearest to `wrong`, if at most a third of the letters (or two) differ.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let most = (wrong.chars().count() / 3).max(2);
    let lower = wrong.to_lowercase();
    let distances = known.into_iter().map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name));
    distances.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name.to_owned())
}

/// The text `: did you mean `x`?`, or an empty text.
pub(crate) fn did_you_mean(suggestion: Option<&String>) -> String {
    suggestion.map_or_else(String::new, |name| format!(": did you mean `{name}`?"))
}
