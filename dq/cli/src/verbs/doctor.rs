//! `dq doctor`.

use clap::Args;
use comfy_table::Cell;
use dq::inspect::{Doctor, Finding, Repaired, Severity};
use dq::job::TopicName;
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::safe::{cut, safe};
use crate::screen::{alarm, cell, grouped, many};
use crate::session::Session;
use crate::verbs::topics::{known, no_topics};

/// How often it examines and repairs: a repair may reveal more.
const ROUNDS: usize = 3;

/// The arguments of `dq doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// The topic [default: all topics of the app]
    #[arg(value_name = "TOPIC")]
    pub topic: Option<TopicName>,
    /// Repair what it can, after a list of the repairs and a confirmation
    #[arg(long)]
    pub repair: bool,
}

/// A line of JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a> {
    Finding(&'a Finding),
    Repaired(&'a Repaired),
    /// How many findings are left, and how many were repaired.
    End {
        topics: usize,
        looked_at: usize,
        findings: usize,
        repaired: usize,
    },
}

/// Examines, and repairs if that is asked for.
pub(crate) async fn run(session: &mut Session<'_>, arguments: &DoctorArguments) -> Result<(), Failure> {
    let provider = session.provider().await?;
    let inspector = provider.inspect();
    let only = arguments.topic.as_ref().map(TopicName::as_str);
    // A topic that cannot be read exists.
    if let Some(topic) = &arguments.topic
        && let Err(missing @ Failure::Missing(_)) = known(&provider, topic).await
    {
        return Err(missing);
    }
    let mut repaired = 0;
    for round in 1..=ROUNDS {
        let mut doctor = inspector.doctor(only)?;
        examine(session, &mut doctor).await?;
        show(session, &doctor)?;
        let repairs = doctor.findings().iter().filter(|finding| finding.repair.is_some()).count();
        if !arguments.repair || repairs == 0 || round == ROUNDS {
            return end(session, &doctor, arguments, repaired);
        }
        session.screen.flush()?;
        session.screen.confirm(&format!("make {}", many(repairs, "repair")))?;
        let done = repair(session, &mut doctor).await?;
        repaired += done;
        if done == 0 {
            return end(session, &doctor, arguments, repaired);
        }
    }
    Ok(())
}

/// Takes all steps, until the user interrupts it.
async fn examine(session: &Session<'_>, doctor: &mut Doctor) -> Result<(), Failure> {
    let progress = if session.screen.is_json() { Progress::hidden() } else { Progress::of_entries() };
    let mut looked_at = 0;
    let done = loop {
        let interrupt = tokio::signal::ctrl_c();
        tokio::select! {
            step = doctor.step() => match step {
                Ok(None) => break Ok(()),
                Ok(Some(so_far)) => {
                    progress.jobs((so_far.looked_at - looked_at) as u64);
                    looked_at = so_far.looked_at;
                }
                Err(error) => break Err(error.into()),
            },
            _ = interrupt => break Err(Failure::Interrupted("interrupted; nothing was changed. Run it again".into())),
        }
    };
    progress.end();
    done
}

fn show(session: &mut Session<'_>, doctor: &Doctor) -> Result<(), Failure> {
    let screen = &mut session.screen;
    if screen.is_json() {
        for finding in doctor.findings() {
            screen.json(&Line::Finding(finding))?;
        }
        return Ok(());
    }
    if doctor.findings().is_empty() {
        return Ok(());
    }
    screen.table(&["SEVERITY", "CODE", "WHERE", "FINDING"], doctor.findings().iter().map(row).collect())?;
    // What to do is said once for each code.
    let mut said = Vec::new();
    for finding in doctor.findings() {
        if !said.contains(&finding.code) {
            said.push(finding.code);
            let repair = finding.repair.as_ref().map(|repair| format!("--repair: {repair}. ")).unwrap_or_default();
            screen.line(format_args!("{}: {repair}By hand: {}", finding.code, finding.advice))?;
        }
    }
    Ok(())
}

fn row(finding: &Finding) -> Vec<Cell> {
    let place = match (&finding.topic, &finding.id) {
        (Some(topic), Some(id)) => format!("{topic}/{}", cut(id, 60)),
        (Some(topic), None) => topic.to_string(),
        (None, _) => "the store".into(),
    };
    vec![
        alarm(cell(finding.severity), finding.severity == Severity::Error),
        cell(finding.code),
        cell(place),
        cell(&finding.text),
    ]
}

/// Makes all repairs, each after a line that says what it does. Returns how many were made.
async fn repair(session: &mut Session<'_>, doctor: &mut Doctor) -> Result<usize, Failure> {
    let mut done = 0;
    while let Some(finding) = doctor.next_repair() {
        if !session.screen.is_json() {
            let what = finding.repair.clone().unwrap_or_default();
            let id = safe(finding.id.as_deref().unwrap_or_default());
            let topic = finding.topic.as_ref().map_or("", TopicName::as_str);
            session.screen.line(format_args!("{} {topic}/{id}: {what}", finding.code))?;
            session.screen.flush()?;
        }
        let Some(repaired) = doctor.repair().await? else { break };
        done += usize::from(repaired.done);
        if session.screen.is_json() {
            session.screen.json(&Line::Repaired(&repaired))?;
        } else if !repaired.done {
            session.screen.line("  nothing was done: it has ended meanwhile, or must be repaired by hand")?;
        }
    }
    Ok(done)
}

/// Says what is left; that something is left is a failure, so that scripts see it.
fn end(
    session: &mut Session<'_>,
    doctor: &Doctor,
    arguments: &DoctorArguments,
    repaired: usize,
) -> Result<(), Failure> {
    let progress = doctor.progress();
    let findings = progress.findings;
    if progress.topics == 0 {
        session.screen.say(no_topics(&session.common.app()?));
    }
    let screen = &mut session.screen;
    if screen.is_json() {
        let (topics, looked_at) = (progress.topics, progress.looked_at);
        screen.json(&Line::End { topics, looked_at, findings, repaired })?;
    } else {
        let made = if repaired > 0 { format!("{} repaired; ", grouped(repaired)) } else { String::new() };
        let (topics, looked_at) = (many(progress.topics, "topic"), grouped(progress.looked_at));
        let found = if findings == 0 { "nothing is wrong" } else { "see above" };
        screen.line(format_args!("{made}{topics} and {looked_at} entries examined: {found}"))?;
    }
    if findings == 0 {
        return Ok(());
    }
    let can_repair = doctor.next_repair().is_some() && !arguments.repair;
    let next = match (can_repair, progress.left_out) {
        (true, _) => "; `dq doctor --repair` makes the repairs",
        (false, 0) => "; docs/guide/doctor.md has a section on each code",
        (false, _) => "; more were found than are shown: run it again",
    };
    Err(Failure::Problems(format!("{}{next}", many(findings, "finding"))))
}
