//! Lists the behaviours of the conformance suite: each public function of a public module of `src/conformance` is one. The list is
//! a macro that hands all of them to `store_conformance`, for `$what`.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src/conformance");
    let folder = Path::new("src/conformance");
    let mut list = String::new();
    for module in named(&folder.join("mod.rs"), "pub mod ", ';') {
        let behaviours = named(&folder.join(format!("{module}.rs")), "pub async fn ", '(');
        list += &format!("        {module}: {};\n", behaviours.join(" "));
    }
    let list = format!(
        "/// Hands the list to [`store_conformance`], for `$what`.
#[doc(hidden)]
#[macro_export]
macro_rules! store_behaviours {{
    ($what:ident $with:tt) => {{ $crate::store_conformance! {{ @$what $with
{list}    }} }};
}}
"
    );
    let out = env::var_os("OUT_DIR").expect("cargo names the folder of what a build script writes");
    fs::write(Path::new(&out).join("behaviours.rs"), list).expect("cargo has made that folder");
}

/// What stands between `before` and `after` in the lines of a file that begin with `before`.
fn named(path: &Path, before: &str, after: char) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter_map(|line| line.strip_prefix(before));
    lines.filter_map(|line| line.split(after).next()).map(str::to_owned).collect()
}
