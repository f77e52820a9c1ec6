//! Draws changes by a seed. Each change has a lot of its own, so edits of other places leave the draw as it is.

use std::path::Path;

use crate::change::{Change, Found, LeftOut};
use crate::{rust, script};

/// The crates whose sources are changed, by their roots.
pub(crate) const CRATES: [&str; 2] = ["dq/src/lib.rs", "dq-macros/src/lib.rs"];

/// The folder of the scripts.
const SCRIPTS: &str = "dq/src/store/redis/lua";

/// All changes of all files below `top`.
pub(crate) fn all(top: &Path) -> Result<Found, String> {
    let mut all = Found::default();
    for root in CRATES {
        for source in rust::of_crate(top, root)? {
            let Found { changes, left_out } = rust::find(&source);
            all.changes.extend(changes);
            all.left_out = sum(all.left_out, left_out);
        }
    }
    for path in scripts(top, SCRIPTS)? {
        let text = std::fs::read_to_string(top.join(&path)).map_err(|error| format!("{path}: {error}"))?;
        all.changes.extend(script::find(&path, &text).changes);
    }
    Ok(all)
}

fn sum(one: LeftOut, other: LeftOut) -> LeftOut {
    LeftOut {
        const_functions: one.const_functions + other.const_functions,
        constants: one.constants + other.constants,
        macros: one.macros + other.macros,
    }
}

fn scripts(top: &Path, folder: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(top.join(folder)).map_err(|error| format!("{folder}: {error}"))?;
    for entry in entries {
        let entry = entry.map_err(|error| format!("{folder}: {error}"))?;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        match entry.path().is_dir() {
            true => found.extend(scripts(top, &path)?),
            false if path.ends_with(".lua") => found.push(path),
            false => {}
        }
    }
    found.sort();
    Ok(found)
}

/// The changes in the order of their lots.
pub(crate) fn drawn(mut changes: Vec<Change>, seed: u64) -> Vec<Change> {
    changes.sort_by_cached_key(|change| lot(seed, &change.key()));
    changes
}

/// FNV-1a, mixed once more so that similar texts are far apart.
fn lot(seed: u64, text: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(text.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
