//! Where the assets come from that others wrote.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

#[test]
fn each_asset_that_others_wrote_is_the_file_of_the_table_beside_it() {
    let rows = include_str!("../../assets/README.md").lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect::<Vec<_>>());
    let table: BTreeMap<String, String> = cells.map(|cells| (cells[1].clone(), cells[5].clone())).collect();
    let mut found = BTreeMap::new();
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("assets")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("dq.") || name == "README.md" {
            continue;
        }
        let hash = Sha256::digest(fs::read(&path).unwrap());
        found.insert(name, hash.iter().map(|byte| format!("{byte:02x}")).collect());
    }
    assert_eq!(found, table);
}
