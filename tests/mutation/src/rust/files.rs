//! The files of a crate, from its root along its modules. Unit tests are not among them.

use std::fs;
use std::path::{Path, PathBuf};

use syn::Item;

use super::configured::is_compiled;

/// A source file.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the top of the repository.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) tree: syn::File,
}

/// All files of the crate with this root, below `top`.
pub(crate) fn of_crate(top: &Path, root: &str) -> Result<Vec<Source>, String> {
    let mut files = Vec::new();
    let folder = Path::new(root).parent().unwrap_or(Path::new("")).to_path_buf();
    add(top, Path::new(root), &folder, &mut files)?;
    Ok(files)
}

fn add(top: &Path, path: &Path, folder: &Path, files: &mut Vec<Source>) -> Result<(), String> {
    let text = fs::read_to_string(top.join(path)).map_err(|error| format!("{}: {error}", path.display()))?;
    let tree = syn::parse_file(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let modules: Vec<PathBuf> = modules(top, &tree.items, folder);
    files.push(Source { path: path.to_string_lossy().into_owned(), text, tree });
    for module in modules {
        let inside = match module.file_name().is_some_and(|name| name == "mod.rs") {
            true => module.parent().unwrap_or(folder).to_path_buf(),
            false => module.with_extension(""),
        };
        add(top, &module, &inside, files)?;
    }
    Ok(())
}

/// The files of the modules that these items declare.
fn modules(top: &Path, items: &[Item], folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for item in items {
        let Item::Mod(module) = item else { continue };
        if !is_compiled(&module.attrs) {
            continue;
        }
        let name = module.ident.to_string();
        match &module.content {
            Some((_, items)) => found.extend(modules(top, items, &folder.join(name))),
            None => {
                let beside = folder.join(format!("{name}.rs"));
                found.push(if top.join(&beside).exists() { beside } else { folder.join(name).join("mod.rs") });
            }
        }
    }
    found
}
