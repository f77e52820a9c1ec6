//! The name of dq in a program: Cargo.toml may rename a dependency.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const DQ: &str = "dq";

/// The name of dq in the crate that is being compiled; `dq` if its Cargo.toml has no such dependency.
pub(super) fn name_of_dq() -> String {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let renamed = folder.and_then(|folder| {
        let manifest = |folder: &std::path::Path| fs::read_to_string(folder.join("Cargo.toml")).ok();
        let own = manifest(&folder)?;
        let workspace = || folder.ancestors().skip(1).filter_map(manifest).find(|text| text.contains("[workspace"));
        new_name(&own, workspace)
    });
    renamed.map_or_else(|| DQ.into(), |name| name.replace('-', "_"))
}

/// The name that the manifest, or that of its workspace, gives to dq instead of `dq`.
fn new_name(own: &str, workspace: impl FnOnce() -> Option<String>) -> Option<String> {
    let is_dq = |settings: &str| settings.contains("package=\"dq\"");
    let own = dependencies(own);
    if own.contains_key(DQ) {
        return None;
    }
    if let Some((name, _)) = own.iter().find(|(_, settings)| is_dq(settings)) {
        return Some(name.clone());
    }
    let mut inherited = own.into_iter().filter(|(_, settings)| settings.contains("workspace=true")).peekable();
    inherited.peek()?;
    let workspace = dependencies(&workspace()?);
    inherited.map(|(name, _)| name).find(|name| workspace.get(name).is_some_and(|settings| is_dq(settings)))
}

/// Each dependency with its settings, without spaces. Reads the forms of TOML that people write dependencies in.
fn dependencies(manifest: &str) -> BTreeMap<String, String> {
    let is_table = |part: &str| part.ends_with("dependencies");
    let mut found = BTreeMap::<String, String>::new();
    let mut table = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            table = header.split(']').next().unwrap_or_default();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let unquoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        let (before, last) = table.rsplit_once('.').unwrap_or(("", table));
        let (name, setting) = match key.split_once('.') {
            _ if is_table(before) => (unquoted(last), format!("{key}={value}")),
            _ if !is_table(last) => continue,
            Some((name, key)) => (unquoted(name), format!("{key}={value}")),
            None => (unquoted(key), value.to_owned()),
        };
        let settings = setting.chars().filter(|c| !c.is_whitespace());
        found.entry(name).or_default().extend(settings.map(|c| if c == '\'' { '"' } else { c }).chain([',']));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(own: &str, workspace: &str) -> Option<String> {
        new_name(own, || Some(workspace.to_owned()))
    }

    #[test]
    fn every_form_of_a_renamed_dependency_is_read() {
        for manifest in [
            "[dependencies]\nserde = \"1\"\nwork = { version = \"1\", package = \"dq\" }",
            "[dependencies]\nwork.package = \"dq\"\nwork.version = \"1\"",
            "[dependencies.work]\nversion = \"1\"\npackage = 'dq' # renamed",
            "[target.'cfg(unix)'.dependencies]\nwork = {package=\"dq\",path=\"../dq\"}",
            "[dev-dependencies]\n\"work\" = { package = \"dq\" }",
        ] {
            assert_eq!(name(manifest, "").as_deref(), Some("work"), "{manifest}");
        }
    }

    #[test]
    fn a_workspace_can_rename_a_dependency() {
        let workspace = "[workspace]\n[workspace.dependencies]\nwork = { package = \"dq\" }\nother = \"1\"";
        for manifest in ["[dependencies]\nwork.workspace = true", "[dependencies]\nwork = { workspace = true }"] {
            assert_eq!(name(manifest, workspace).as_deref(), Some("work"), "{manifest}");
        }
        assert_eq!(name("[dependencies]\nother.workspace = true", workspace), None);
        assert_eq!(name("[dependencies]\nwork = \"1\"", workspace), None);
    }

    #[test]
    fn a_dependency_under_its_own_name_is_not_renamed() {
        assert_eq!(name("[dependencies]\ndq = \"1\"\n[dev-dependencies]\nwork = { package = \"dq\" }", ""), None);
        assert_eq!(name("[package]\nname = \"dq\"\n[dependencies]\nserde = \"1\"", ""), None);
    }
}
