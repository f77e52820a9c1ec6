//! `dq completions` and `dq man`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::screen::Screen;

/// Writes the completions of a shell.
pub(crate) fn run_completions(screen: &mut Screen<'_>, mut command: Command, shell: Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "dq", &mut text);
    screen.raw(&text)
}

/// Writes the man page of the program to the screen, or those of all verbs into a directory.
pub(crate) fn run_man(screen: &mut Screen<'_>, mut command: Command, directory: Option<&Path>) -> Result<(), Failure> {
    command.build();
    let Some(directory) = directory else {
        let mut text = Vec::new();
        clap_mangen::Man::new(command).render(&mut text).map_err(Failure::Write)?;
        return screen.raw(&text);
    };
    let mut pages = Vec::new();
    collect(&command, "dq", &mut pages);
    fs::create_dir_all(directory).map_err(|source| Failure::Open { path: directory.to_owned(), source })?;
    for (name, page) in pages {
        let path: PathBuf = directory.join(format!("{name}.1"));
        let mut text = Vec::new();
        page.render(&mut text).map_err(Failure::Write)?;
        fs::write(&path, text).map_err(|source| Failure::Open { path, source })?;
    }
    screen.say(format_args!("the man pages are in {}", directory.display()));
    Ok(())
}

fn collect(command: &Command, name: &str, pages: &mut Vec<(String, clap_mangen::Man)>) {
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        collect(verb, &format!("{name}-{}", verb.get_name()), pages);
    }
    let page = clap_mangen::Man::new(command.clone()).title(name.to_uppercase());
    pages.push((name.to_owned(), page));
}
