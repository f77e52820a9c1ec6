//! `dq top`: the topics of an app, live.

mod model;
mod reader;
mod view;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use dq::Provider;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::{mpsc, watch};

use crate::failure::Failure;
use crate::session::Session;
use crate::when;

pub use model::{Action, Model, Sort};
pub use reader::{Seen, Wanted, read};
pub use view::draw;

/// How often the keyboard thread looks whether it shall end.
const KEYBOARD: Duration = Duration::from_millis(200);

/// How many keys and answers may wait.
const WAITING: usize = 64;

/// The arguments of `dq top`.
#[derive(Debug, Args)]
pub struct TopArguments {
    /// How often to read the store
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = when::duration)]
    pub every: Duration,
    /// What to show first on each page
    #[arg(long, value_name = "WHAT", value_enum, default_value = "late")]
    pub sort: Sort,
}

/// Something that happened.
enum Happened {
    Key(event::KeyEvent),
    Resized,
    Seen(Box<Seen>),
    Said(String),
}

/// Shows the topics until the user quits.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &TopArguments) -> Result<(), Failure> {
    if session.screen.is_json() || !session.screen.is_terminal() {
        return Err(Failure::Usage(
            "`dq top` needs a terminal: `dq topics` prints the same once, also with `--json`".into(),
        ));
    }
    let provider = session.provider().await?;
    let mut terminal = ratatui::try_init().map_err(Failure::Terminal)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (tell, happened) = mpsc::channel(WAITING);
    let keyboard = keyboard(tell.clone(), Arc::clone(&is_over));
    let model = Model::new(provider.app().to_string(), arguments.sort);
    let done = live(&mut terminal, model, &provider, arguments.every, tell, happened).await;
    is_over.store(true, Ordering::Relaxed);
    let restored = ratatui::try_restore().map_err(Failure::Terminal);
    // It ends within its pause; it holds nothing that the program needs.
    drop(keyboard);
    done.and(restored)
}

/// Reads the keyboard on a thread of its own, because a read blocks.
fn keyboard(tell: mpsc::Sender<Happened>, is_over: Arc<AtomicBool>) -> std::thread::JoinHandle<io::Result<()>> {
    std::thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            if !event::poll(KEYBOARD)? {
                continue;
            }
            let happened = match event::read()? {
                Event::Key(key) if key.is_press() => Happened::Key(key),
                Event::Resize(..) => Happened::Resized,
                _ => continue,
            };
            if tell.blocking_send(happened).is_err() {
                break;
            }
        }
        Ok(())
    })
}

async fn live(
    terminal: &mut ratatui::DefaultTerminal,
    mut model: Model,
    provider: &Provider,
    every: Duration,
    tell: mpsc::Sender<Happened>,
    mut happened: mpsc::Receiver<Happened>,
) -> Result<(), Failure> {
    let (want, wanted) = watch::channel(Wanted::default());
    let reading = tokio::spawn(keep_reading(provider.clone(), wanted, every, tell.clone()));
    loop {
        terminal.draw(|frame| draw(frame, &model)).map_err(Failure::Terminal)?;
        match happened.recv().await {
            Some(Happened::Key(key)) => match model.key(key) {
                Action::Quit => break,
                Action::Nothing => {}
                Action::Read => {
                    want.send_replace(model.wanted());
                }
                Action::Pause(topic) => drop(tokio::spawn(pause(provider.clone(), topic, tell.clone()))),
                Action::Resume(topic) => drop(tokio::spawn(resume(provider.clone(), topic, tell.clone()))),
            },
            Some(Happened::Resized) => {}
            Some(Happened::Seen(seen)) => model.show(*seen),
            Some(Happened::Said(text)) => {
                model.say(text);
                want.send_replace(model.wanted());
            }
            None => break,
        }
    }
    reading.abort();
    Ok(())
}

async fn keep_reading(
    provider: Provider,
    mut wanted: watch::Receiver<Wanted>,
    every: Duration,
    tell: mpsc::Sender<Happened>,
) {
    let inspector = provider.inspect();
    loop {
        let now = wanted.borrow_and_update().clone();
        let seen = read(&inspector, now).await;
        if tell.send(Happened::Seen(Box::new(seen))).await.is_err() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            changed = wanted.changed() => if changed.is_err() { return },
        }
    }
}

async fn pause(provider: Provider, topic: String, tell: mpsc::Sender<Happened>) {
    let paused = async { provider.topic(&topic)?.pause().reason("paused in `dq top`").await.map_err(Failure::from) };
    let text = match paused.await {
        Ok(_) => format!("{topic} is paused"),
        Err(failure) => format!("{topic} is not paused: {failure}"),
    };
    let _ = tell.send(Happened::Said(text)).await;
}

async fn resume(provider: Provider, topic: String, tell: mpsc::Sender<Happened>) {
    let resumed = async { provider.topic(&topic)?.resume().await.map_err(Failure::from) };
    let text = match resumed.await {
        Ok(_) => format!("{topic} runs again"),
        Err(failure) => format!("{topic} is still paused: {failure}"),
    };
    let _ = tell.send(Happened::Said(text)).await;
}
