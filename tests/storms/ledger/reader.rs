//! Reading the files of a storm.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::Line;

/// The file of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The process, for example `node-2.5`: the fifth in the second place of a node.
    pub process: String,
    /// What it wrote.
    pub lines: Vec<Line>,
}

/// Reads all files in `folder`. The last line of a file may have been cut by a kill.
///
/// # Errors
/// A file cannot be read, or another line than its last is not an entry.
pub fn read(folder: &Path) -> io::Result<Vec<Log>> {
    let mut logs = Vec::new();
    for file in std::fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|ending| ending == "jsonl") {
            let process = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let lines = lines(BufReader::new(File::open(&path)?))
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            logs.push(Log { process, lines });
        }
    }
    logs.sort_by(|a, b| a.process.cmp(&b.process));
    Ok(logs)
}

fn lines(mut file: impl BufRead) -> io::Result<Vec<Line>> {
    let (mut lines, mut text) = (Vec::new(), Vec::new());
    while file.read_until(b'\n', &mut text)? > 0 {
        if text.ends_with(b"\n") {
            lines.push(serde_json::from_slice(&text)?);
        }
        text.clear();
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, Ledger};
    use super::*;

    #[test]
    fn what_was_written_is_read_and_a_cut_line_is_not() {
        let folder = std::env::temp_dir().join(format!("dq-storm-reader-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let ledger = Ledger::create(&folder, "node-1.1").unwrap();
        let entries = [Entry::Listing, Entry::Adding { id: "a \"quoted\"".into(), after: 7 }];
        ledger.note_all(entries.clone());
        assert!(Ledger::create(&folder, "node-1.1").is_err(), "a file belongs to one process");
        let text = std::fs::read(folder.join("node-1.1.jsonl")).unwrap();
        let logs = read(&folder).unwrap();
        assert_eq!(logs[0].process, "node-1.1");
        assert!(logs[0].lines.iter().map(|line| &line.entry).eq(&entries));
        for cut in 0..text.len() {
            let whole = text[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(lines(&text[..cut]).unwrap().len(), whole, "cut at {cut}");
        }
        assert!(lines(&b"{}\n"[..]).is_err(), "a line that was not cut is an entry");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
