//! Processes that programs start and leave: in their group, in a session of their own, without a parent.
#![expect(
    clippy::disallowed_methods,
    reason = "an operator that is killed is started without the spawner, which would end what it left"
)]

use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit};

use super::*;

/// Ways to leave a running process; each prints its id.
const ESCAPES: [&str; 4] = [
    "sleep 1000 >/dev/null 2>&1 & echo $!",
    "setsid sleep 1000 >/dev/null 2>&1 & echo $!",
    // The parent and grandparent of this process have ended.
    "echo $(setsid bash -c 'sleep 1000 >/dev/null 2>&1 & echo $!')",
    // This process keeps the output pipe open.
    "setsid sleep 1000 & echo $!",
];

#[tokio::test]
async fn what_a_program_leaves_is_ended_after_it() {
    let spawner = Spawner::new().unwrap();
    for escape in ESCAPES {
        let finished = spawner.run(bash(escape), &CancellationToken::new()).await.unwrap();
        assert!(finished.exit.is_success());
        let left = finished.stdout.text();
        assert!(!left.trim().is_empty() && !lives(left.trim()), "{escape}: {left} lives");
    }
}

#[tokio::test]
async fn what_ends_soon_by_itself_may_finish() {
    let dir = TempDir::new().unwrap();
    let done = dir.path().join("done");
    let script = format!("(sleep 0.5; touch {}) >/dev/null 2>&1 &", done.display());
    let finished = run(bash(&script)).await.unwrap();
    assert!(finished.exit.is_success() && done.exists());
}

#[tokio::test]
async fn at_the_deadline_and_at_a_cancellation_all_that_was_started_ends() {
    let spawner = Spawner::new().unwrap();
    for escape in ESCAPES {
        // It also clears its environment, so it can be recognised only while its parents live, and as an orphan not at
        // all.
        let bare = escape.replace("sleep 1000", "env -i sleep 1000");
        for escape in [
            Some(escape.to_owned()),
            Some(bare).filter(|bare| !bare.contains("bash -c")),
        ]
        .into_iter()
        .flatten()
        {
            let script = format!("{escape}; trap '' TERM; sleep 1000 & echo; wait; sleep 1000");
            for ended_by in [EndedBy::Deadline, EndedBy::Cancel] {
                let cancel = CancellationToken::new();
                let trigger = cancel.clone();
                let stdout = Output::lines(move |line| {
                    if line.is_empty() && ended_by == EndedBy::Cancel {
                        trigger.cancel();
                    }
                });
                let spawn = Spawn {
                    deadline: if ended_by == EndedBy::Cancel {
                        LONG
                    } else {
                        Duration::from_secs(2)
                    },
                    grace: Duration::from_millis(200),
                    stdout: stdout.and_captured(100),
                    ..bash(&script)
                };
                let finished = match spawner.run(spawn, &cancel).await.unwrap_err() {
                    ProcessError::TimedOut { finished, .. } => finished,
                    ProcessError::Cancelled { finished, .. } => finished.unwrap(),
                    other => unreachable!("{other:?}"),
                };
                let left = finished.stdout.text();
                assert!(!left.trim().is_empty() && !lives(left.trim()), "{escape}: {left} lives");
            }
        }
    }
}

#[tokio::test]
async fn a_dropped_run_leaves_nothing_behind_in_other_sessions_either() {
    let (sender, mut pids) = tokio::sync::mpsc::unbounded_channel();
    let spawn = Spawn {
        stdout: Output::lines(move |line| sender.send(line.to_owned()).unwrap()),
        ..bash("setsid sleep 1000 >/dev/null 2>&1 & echo $!; wait")
    };
    let spawner = Spawner::new().unwrap();
    let cancel = CancellationToken::new();
    let pid = tokio::select! {
        result = spawner.run(spawn, &cancel) => unreachable!("{result:?}"),
        pid = pids.recv() => pid.unwrap(),
    };
    until("the process of another session is dead", || !lives(&pid)).await;
}

#[test]
fn all_that_was_ever_started_ends_without_a_runtime_and_others_stay() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (spawner, other) = (Spawner::new().unwrap(), Spawner::new().unwrap());
    let (sender, pids) = std::sync::mpsc::channel();
    for spawner in [&spawner, &other] {
        let (spawner, sender) = (spawner.clone(), sender.clone());
        runtime.spawn(async move {
            let spawn = Spawn {
                stdout: Output::lines(move |line| sender.send(line.to_owned()).unwrap()),
                ..bash("echo $$; setsid sleep 1000 >/dev/null 2>&1 & echo $!; wait")
            };
            spawner.run(spawn, &CancellationToken::new()).await
        });
        runtime.block_on(async { tokio::task::yield_now().await });
    }
    let all: Vec<String> = (0..4).map(|_| pids.recv().unwrap()).collect();
    let of = |spawner: &Spawner| -> Vec<&String> {
        let mine = |pid: &&String| {
            let pid = Pid::new(pid.parse().unwrap()).unwrap();
            // A process that is just being started has no environment.
            let mut environments = std::iter::repeat_with(|| table::Environment::of(pid).unwrap());
            let environment = environments
                .find(|environment| !matches!(environment, table::Environment::Starting))
                .unwrap();
            environment
                .get(mark::VARIABLE)
                .is_some_and(|mark| spawner.marks().include(&mark))
        };
        all.iter().filter(mine).collect()
    };
    let (ended, stay) = (of(&spawner), of(&other));
    assert_eq!((ended.len(), stay.len()), (2, 2));
    let thread = std::thread::spawn(move || spawner.end_all_runs(LONG));
    assert!(thread.join().unwrap());
    for pid in ended {
        assert!(!lives(pid), "{pid} lives");
    }
    for pid in stay {
        assert!(lives(pid), "{pid} was ended");
    }
    assert!(other.end_all_runs(LONG));
}

#[tokio::test]
async fn what_a_killed_operator_left_is_ended_by_the_next() {
    if is_actor() {
        let spawn = Spawn {
            stdout: Output::lines(|line| println!("{line}")),
            ..bash("setsid sleep 1000 >/dev/null 2>&1 & echo left $!; exec sleep 1000")
        };
        run(spawn).await.unwrap();
        unreachable!("the actor is killed before");
    }
    // Not through the spawner: it kills all descendants of a child when the child's run ends.
    let mut actor = actor("leftovers::what_a_killed_operator_left_is_ended_by_the_next");
    let mut command = Command::new(&actor.program);
    command.args(&actor.args).env_clear().envs(actor.env.drain(..));
    let mut operator = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = io::BufReader::new(operator.stdout.take().unwrap());
    let pid = loop {
        let mut line = String::new();
        assert!(io::BufRead::read_line(&mut said, &mut line).unwrap() > 0);
        if let Some((_, pid)) = line.split_once("left ") {
            break pid.trim().to_owned();
        }
    };
    // A process that is just being started has no environment, by which it would be found.
    let name = || fs_err::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    until("it sleeps", || name() == "sleep\n").await;
    end_runs_of_the_dead();
    assert!(lives(&pid), "its operator still runs");
    operator.kill().unwrap();
    operator.wait().unwrap();
    assert!(lives(&pid), "nobody else has ended it");
    end_runs_of_the_dead();
    until("it is dead", || !lives(&pid)).await;
}

#[tokio::test]
async fn our_memory_is_ours() {
    if is_actor() {
        // As on a machine where core files are written.
        let may = Rlimit {
            current: rustix::process::getrlimit(Resource::Core).maximum,
            ..rustix::process::getrlimit(Resource::Core)
        };
        rustix::process::setrlimit(Resource::Core, may).unwrap();
        prepare_this_process().unwrap();
        let kept = rustix::process::dumpable_behavior().unwrap();
        assert_eq!(kept, rustix::process::DumpableBehavior::NotDumpable);
        assert!(sys::adopts_orphans());
        // The child itself can still be inspected.
        let finished = run(bash(
            "setsid sleep 1000 & echo $!; until grep -qx 1000 /proc/$$/oom_score_adj; do :; done; ulimit -c",
        ))
        .await
        .unwrap();
        let said = finished.stdout.text();
        let said: Vec<&str> = said.lines().collect();
        assert!(!lives(said[0]) && said[1..] == ["0"], "{said:?}");
        return;
    }
    let test = "leftovers::our_memory_is_ours";
    // As root and as an ordinary user, who may not read all processes.
    for program in ["/usr/bin/env", "/usr/bin/setpriv"] {
        let mut actor = actor(test);
        let mut args: Vec<OsString> = Vec::new();
        if program.ends_with("setpriv") {
            args.extend(["--reuid=65532", "--regid=65532", "--clear-groups"].map(Into::into));
        }
        args.push(actor.program.clone().into());
        args.append(&mut actor.args);
        let finished = run(Spawn {
            program: program.into(),
            args,
            ..actor
        });
        let finished = finished.await.unwrap();
        let said = finished.stdout.text() + &finished.stderr.text();
        if program.ends_with("setpriv") && (said.contains("setpriv:") || said.contains("ermission denied")) {
            // Changing the user is not allowed here, or that user may not read the test's folder.
            continue;
        }
        assert!(finished.exit.is_success() && said.contains("1 passed"), "{said}");
    }
}
