//! Programs that one call of the compiler builds, on the libraries that cargo has built for this test: cargo would take longer to
//! find out that these are there than the compiler takes for the program.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

/// The libraries that the programs name, and the folder with all others.
pub(crate) struct Libraries {
    folder: PathBuf,
    named: Vec<(&'static str, PathBuf)>,
}

/// Compiles only with libraries that belong together: `DelayJob` asks for `Serialize` of the same `serde`.
const BELONG_TOGETHER: &str = "
    pub fn is_one<T: dq::DelayJob>() -> usize { fn size<T: serde::Serialize>() -> usize { size_of::<T>() } size::<T>() }
    pub use dq::testing::Harness;
    pub use tokio::task::yield_now;
    #[tokio::main(flavor = \"current_thread\")] async fn main() {}
";

fn newest(folder: &Path, name: &str) -> Vec<PathBuf> {
    let prefix = format!("lib{name}-");
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(&prefix) && name.ends_with(".rlib")
    };
    let mut found: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_wanted).collect();
    found.sort_by_key(|path| Reverse(fs::metadata(path).unwrap().modified().unwrap()));
    found
}

impl Libraries {
    /// Those beside this test. A library that was built with several sets of features is there several times; the newest dq counts
    /// that has everything, and what it was built with.
    pub(crate) fn built() -> Self {
        let folder = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
        let probe = scratch().join("belong_together.rs");
        fs::write(&probe, BELONG_TOGETHER).unwrap();
        for dq in newest(&folder, "dq") {
            for serde in newest(&folder, "serde") {
                for tokio in newest(&folder, "tokio") {
                    let named = vec![("dq", dq.clone()), ("serde", serde.clone()), ("tokio", tokio)];
                    let libraries = Self { folder: folder.clone(), named };
                    if libraries.compiler(&probe).arg("--emit=metadata").output().unwrap().status.success() {
                        return libraries;
                    }
                }
            }
        }
        panic!("cargo built dq for this test");
    }

    /// The newest dq, as a dependency of this name, and `serde`.
    pub(crate) fn renamed(mut self, name: &'static str) -> Self {
        self.named.truncate(2);
        self.named[0].0 = name;
        self
    }

    pub(crate) fn compiler(&self, program: &Path) -> Command {
        let joined = |start: &str, path: &Path| {
            let mut argument = OsString::from(start);
            argument.push(path);
            argument
        };
        let mut compiler = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        compiler.arg(program).args(["--edition=2024", "-Cdebuginfo=0", "-Cstrip=symbols", "--out-dir"]).arg(scratch());
        for (name, library) in &self.named {
            compiler.arg("--extern").arg(joined(&format!("{name}="), library));
        }
        compiler.arg("-L").arg(joined("dependency=", &self.folder));
        compiler
    }

    /// Checks each of these programs, several at the same time. Returns what is wrong with some of them.
    pub(crate) fn each(
        &self,
        programs: Vec<PathBuf>,
        wrong: impl Fn(&Self, &Path) -> Option<String> + Sync,
    ) -> Vec<String> {
        let (programs, failed) = (Mutex::new(programs.into_iter()), Mutex::new(Vec::new()));
        let next = || programs.lock().unwrap().next();
        let work = || {
            while let Some(program) = next() {
                if let Some(what) = wrong(self, &program) {
                    failed.lock().unwrap().push(format!("{}: {what}", program.display()));
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
        failed.into_inner().unwrap()
    }
}

/// Where the programs are built.
pub(crate) fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ui");
    fs::create_dir_all(&folder).unwrap();
    folder
}
