//! What the compiler says, without what differs from one machine to another, or whenever a file of dq changes.

/// The folder of the programs, from that of the workspace.
const PROGRAMS: &str = "tests/ui/";

/// What follows the errors.
const SUMMARY: [&str; 3] =
    ["error: aborting due to", "For more information about this error", "Some errors have detailed explanations"];

/// The text of the errors of a compiler that runs in the folder of the workspace: only the program itself has numbers of lines.
pub(crate) fn plain(said: &str) -> String {
    let is_error = |part: &&str| !SUMMARY.iter().any(|summary| part.starts_with(summary));
    said.trim_end().split("\n\n").filter(is_error).map(plain_error).collect::<Vec<_>>().join("\n\n")
}

fn plain_error(error: &str) -> String {
    let (mut lines, mut is_elsewhere, mut is_standard, mut widest) = (Vec::new(), false, false, 0);
    for line in error.lines() {
        let at = ["--> ", "::: "].iter().find_map(|arrow| line.find(arrow)).filter(|at| line[..*at].trim().is_empty());
        if let Some((arrow, place)) = at.map(|at| line.split_at(at + 4)) {
            let file = place.split(':').next().unwrap_or_default();
            // Only the standard library has an absolute path.
            let (known, standard) =
                (place.strip_prefix(PROGRAMS), file.starts_with('/').then(|| file.split_once("/library/")));
            (is_elsewhere, is_standard) = (known.is_none(), standard.is_some());
            let place = match (known, standard.flatten()) {
                (Some(place), _) => place.to_owned(),
                (None, Some((_, file))) => format!("$RUST/{file}"),
                (None, None) => format!("$WORKSPACE/{file}"),
            };
            lines.push(format!("{arrow}{place}"));
            continue;
        }
        // A help shows lines of the program, and has no place.
        is_elsewhere &= line.starts_with(|first: char| first == ' ' || first.is_ascii_digit());
        // Its lines are shown only where its source is installed.
        if is_standard && is_elsewhere {
            continue;
        }
        let (margin, code) = line.split_once('|').unwrap_or_default();
        let number = margin.trim();
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        widest = if is_number && !is_elsewhere { number.len().max(widest) } else { widest };
        if let Some((indent, _)) = line.split_once("and ").filter(|(_, rest)| rest.ends_with(" others")) {
            lines.push(format!("{indent}and $N others"));
            continue;
        }
        let without = || format!("{:width$}|{code}", "", width = margin.len());
        lines.push(if is_number && is_elsewhere { without() } else { line.to_owned() });
    }
    // The margin is as wide as the largest number of a line.
    let arrow = error.lines().find(|line| line.trim_start().starts_with("--> ")).unwrap_or_default();
    let margin = arrow.len() - arrow.trim_start().len();
    let cut = " ".repeat(margin.saturating_sub(widest.max(1)));
    lines.iter().map(|line| line.strip_prefix(&*cut).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}
