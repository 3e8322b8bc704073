//! Real programs that end in all possible ways.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::output::CHUNK;
use super::program::Program;
use super::spawner::Unborn;
use super::undertaker::Orphans;
use super::*;

mod leftovers;
mod stuck;

const LONG: Duration = Duration::from_mins(1);

fn bash(script: &str) -> Spawn {
    Spawn {
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        stdout: Output::captured(1 << 20),
        stderr: Output::captured(1 << 20),
        ..Spawn::new("/bin/bash", LONG)
    }
}

async fn run(spawn: Spawn) -> Result<Finished, ProcessError> {
    Spawner::new().unwrap().run(spawn, &CancellationToken::new()).await
}

/// Whether a process with this id lives. A zombie does not.
fn lives(pid: &str) -> bool {
    fs_err::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}

/// Waits until the condition holds; fails the test if it never does.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "never happened: {what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn output_and_exit_code_come_back() {
    let finished = run(bash("echo out; echo err >&2; exit 3")).await.unwrap();
    assert_eq!(finished.exit, Exit::Code(3));
    assert_eq!(finished.exit.to_string(), "exit status 3");
    assert_eq!(
        (finished.stdout.text().as_str(), finished.stderr.text().as_str()),
        ("out\n", "err\n")
    );
}

#[tokio::test]
async fn a_signal_is_told_apart_from_a_code() {
    let finished = run(bash("kill -KILL $$")).await.unwrap();
    assert_eq!(finished.exit, Exit::Signal(libc::SIGKILL));
    assert_eq!(finished.exit.to_string(), "signal: killed");
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let spawn = Spawn {
        env: vec![("ONLY".into(), "this".into())],
        stdout: Output::captured(4096),
        ..Spawn::new("/usr/bin/env", LONG)
    };
    let seen = run(spawn).await.unwrap().stdout.text();
    let seen: Vec<&str> = seen.lines().collect();
    assert!(
        matches!(seen[..], [mark, "ONLY=this"] if mark.starts_with("ADDON_OPERATOR_RUN=")),
        "{seen:?}"
    );
}

#[tokio::test]
async fn the_child_gets_no_descriptor_of_ours() {
    sys::open_carelessly();
    let finished = run(bash("ls /proc/self/fd | wc -l")).await.unwrap();
    // Descriptors 0, 1, 2 and the directory that ls itself opens.
    assert_eq!(finished.stdout.text().trim(), "4");
}

#[tokio::test]
async fn a_child_blocks_no_signal_and_ignores_no_broken_pipe() {
    let status = Spawn {
        args: vec!["/proc/self/status".into()],
        stdout: Output::captured(1 << 16),
        ..Spawn::new("/bin/cat", LONG)
    };
    let status = run(status).await.unwrap().stdout.text();
    let ours = fs_err::read_to_string("/proc/self/status").unwrap();
    let mask = |status: &str, name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(mask.unwrap().trim(), 16).unwrap()
    };
    let broken_pipe = 1 << (libc::SIGPIPE - 1);
    assert_eq!(mask(&status, "SigBlk:"), 0, "none is blocked");
    assert_eq!(mask(&ours, "SigIgn:") & broken_pipe, broken_pipe, "Rust ignores it");
    assert_eq!(mask(&status, "SigIgn:"), mask(&ours, "SigIgn:") & !broken_pipe);
}

#[tokio::test]
async fn a_name_without_a_folder_is_searched_in_the_childs_path() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("some-hook");
    fs_err::write(&path, "#!/bin/sh\necho \"$0\" \"$PWD\"\n").unwrap();
    let found = || Spawn {
        env: vec![("PATH".into(), format!("/nowhere:{}", dir.path().display()).into())],
        cwd: Some(dir.path().to_owned()),
        stdout: Output::captured(4096),
        ..Spawn::new("some-hook", LONG)
    };
    let error = run(found()).await.unwrap_err();
    let ProcessError::Start { source, .. } = &error else {
        unreachable!("{error:?}")
    };
    assert_eq!(
        source.kind(),
        io::ErrorKind::PermissionDenied,
        "it is there and may not be run"
    );
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let said = run(found()).await.unwrap().stdout.text();
    assert_eq!(said, format!("{} {}\n", path.display(), dir.path().display()));
    let error = run(Spawn::new("some-hook", LONG)).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot start some-hook"), "{error}");
}

#[tokio::test]
async fn a_zero_byte_is_refused() {
    let spawn = Spawn {
        args: vec!["a\0b".into()],
        ..Spawn::new("/bin/true", LONG)
    };
    assert_eq!(run(spawn).await.unwrap_err().to_string(), "cannot start /bin/true");
}

#[tokio::test]
async fn usage_is_filled() {
    let finished = run(bash("i=0; while ((i++ < 100000)); do :; done")).await.unwrap();
    let Usage {
        user,
        sys,
        max_rss_bytes,
        wall,
    } = finished.usage;
    assert!(
        user + sys > Duration::ZERO && user + sys <= wall * 2,
        "{:?}",
        finished.usage
    );
    assert!(
        max_rss_bytes > 1 << 20,
        "bash needs more than a MiB, not {max_rss_bytes} bytes"
    );
}

#[tokio::test]
async fn the_deadline_ends_the_whole_group_even_if_it_ignores_term() {
    let script = "trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000";
    let (sender, mut pids) = tokio::sync::mpsc::unbounded_channel();
    let spawn = Spawn {
        deadline: Duration::from_millis(1500),
        grace: Duration::from_millis(200),
        stdout: Output::lines(move |line| sender.send(line.to_owned()).unwrap()),
        ..bash(script)
    };
    let error = run(spawn).await.unwrap_err();
    let ProcessError::TimedOut { finished, deadline, .. } = &error else {
        unreachable!("{error:?}")
    };
    assert_eq!(*deadline, Duration::from_millis(1500));
    assert_eq!(finished.exit, Exit::Signal(libc::SIGKILL));
    assert_eq!(
        error.to_string(),
        "/bin/bash did not end within 1.5s and was ended (signal: killed)"
    );
    let grandchild = pids.recv().await.unwrap();
    until("the grandchild is dead", || !lives(&grandchild)).await;
}

#[tokio::test]
async fn a_leader_that_obeys_term_does_not_save_its_group() {
    let script = "(trap '' TERM; echo $BASHPID; exec sleep 1000 >/dev/null 2>&1) & wait";
    let cancel = CancellationToken::new();
    let trigger = cancel.clone();
    let stdout = Output::lines(move |_| trigger.cancel()).and_captured(100);
    let spawner = Spawner::new().unwrap();
    let error = spawner
        .run(Spawn { stdout, ..bash(script) }, &cancel)
        .await
        .unwrap_err();
    let ProcessError::Cancelled {
        finished: Some(finished),
        ..
    } = &error
    else {
        unreachable!("{error:?}")
    };
    assert_eq!(finished.exit, Exit::Signal(libc::SIGTERM));
    let grandchild = finished.stdout.text();
    until("the grandchild is dead", || !lives(grandchild.trim())).await;
}

#[tokio::test]
async fn a_cancelled_run_ends_and_keeps_its_output() {
    let cancel = CancellationToken::new();
    let trigger = cancel.clone();
    let stdout = Output::lines(move |_| trigger.cancel()).and_captured(100);
    let spawner = Spawner::new().unwrap();
    let error = spawner
        .run(
            Spawn {
                stdout,
                ..bash("echo ready; sleep 1000")
            },
            &cancel,
        )
        .await
        .unwrap_err();
    let ProcessError::Cancelled {
        finished: Some(finished),
        ..
    } = error
    else {
        unreachable!("{error:?}")
    };
    assert_eq!(finished.stdout.text(), "ready\n");
    assert_eq!(finished.exit, Exit::Signal(libc::SIGTERM));

    let error = spawner.run(bash("exit 0"), &cancel).await.unwrap_err();
    assert!(
        matches!(error, ProcessError::Cancelled { finished: None, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_dropped_run_leaves_nothing_behind() {
    let (sender, mut pids) = tokio::sync::mpsc::unbounded_channel();
    let spawn = Spawn {
        stdout: Output::lines(move |line| sender.send(line.to_owned()).unwrap()),
        ..bash("echo $$; sleep 1000 & echo $!; wait")
    };
    let spawner = Spawner::new().unwrap();
    let cancel = CancellationToken::new();
    let mut pair = Vec::new();
    tokio::select! {
        result = spawner.run(spawn, &cancel) => unreachable!("{result:?}"),
        read = pids.recv_many(&mut pair, 2), if pair.len() < 2 => assert!(read > 0),
    }
    for pid in &pair {
        until("the program is dead", || !lives(pid)).await;
    }
    until("the leader is buried", || {
        !Path::new(&format!("/proc/{}", pair[0])).exists()
    })
    .await;
}

#[tokio::test]
async fn two_hundred_run_side_by_side() {
    let spawner = Spawner::new().unwrap();
    let cancel = CancellationToken::new();
    let runs = (0..200).map(|n| spawner.run(bash(&format!("echo {n}")), &cancel));
    for (n, finished) in futures::future::join_all(runs).await.into_iter().enumerate() {
        assert_eq!(finished.unwrap().stdout.text(), format!("{n}\n"));
    }
}

#[tokio::test]
async fn more_than_a_pipe_holds_on_both_streams_is_read_and_cut() {
    let script = "head -c 300000 /dev/zero & head -c 200000 /dev/zero >&2; wait";
    let spawn = Spawn {
        stdout: Output::captured(250_000),
        stderr: Output::discarded(),
        ..bash(script)
    };
    let finished = run(spawn).await.unwrap();
    assert_eq!(
        (finished.stdout.bytes.len(), finished.stdout.dropped),
        (250_000, 50_000)
    );
    assert_eq!((finished.stderr.bytes.len(), finished.stderr.dropped), (0, 200_000));
}

#[tokio::test]
async fn a_program_that_closes_its_output_is_still_waited_for() {
    let finished = run(bash("exec >&- 2>&-; sleep 0.3; exit 7")).await.unwrap();
    assert_eq!(finished.exit, Exit::Code(7));
    assert!(finished.usage.wall >= Duration::from_millis(300));
}

#[tokio::test]
async fn input_is_fed_and_need_not_be_read() {
    let input = vec![b'x'; 300_000];
    let finished = run(Spawn {
        stdin: Some(input.clone()),
        ..bash("wc -c")
    })
    .await
    .unwrap();
    assert_eq!(finished.stdout.text().trim(), "300000");
    let finished = run(Spawn {
        stdin: Some(input),
        ..bash("exit 0")
    })
    .await
    .unwrap();
    assert!(finished.exit.is_success());
    let finished = run(bash("wc -c")).await.unwrap();
    assert_eq!(finished.stdout.text().trim(), "0");
}

#[tokio::test]
async fn a_grandchild_that_holds_the_output_does_not_hang_us() {
    let finished = run(bash("sleep 1000 & echo $!")).await.unwrap();
    assert!(finished.exit.is_success());
    assert!(finished.usage.wall >= LINGER, "its output is waited for a while");
    let grandchild = finished.stdout.text();
    until("the grandchild is dead", || !lives(grandchild.trim())).await;
}

#[tokio::test]
async fn late_output_of_a_grandchild_is_kept() {
    let finished = run(bash("(sleep 0.2; echo late) & echo early")).await.unwrap();
    assert_eq!(finished.stdout.text(), "early\nlate\n");
}

#[tokio::test]
async fn lines_are_handed_on_while_the_program_runs() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let stderr = Output::lines(move |line| sink.lock().unwrap().push(line.to_owned())).and_captured(3);
    let finished = run(Spawn {
        stderr,
        ..bash("printf 'one\\ntwo' >&2")
    })
    .await
    .unwrap();
    assert_eq!(*seen.lock().unwrap(), ["one", "two"]);
    assert_eq!((finished.stderr.text().as_str(), finished.stderr.dropped), ("one", 4));
}

#[tokio::test]
async fn other_tasks_run_while_a_program_talks() {
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let others = async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    };
    // The most bytes that were handed on while the other task waited for its turn.
    let worst = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&worst);
    let (mut turn, mut bytes) = (0, 0);
    let stdout = Output::lines(move |line| {
        let now = turns.load(Ordering::Relaxed);
        bytes = if now == turn { bytes } else { 0 } + line.len() + 1;
        turn = now;
        seen.fetch_max(bytes, Ordering::Relaxed);
    });
    let talk = "yes 'a line of a hook that says far too much' | head -n 100000";
    let talking = run(Spawn { stdout, ..bash(talk) });
    tokio::select! {
        ended = talking => drop(ended.unwrap()),
        () = others => {}
    }
    let worst = worst.load(Ordering::Relaxed);
    assert!((1..=4 * CHUNK).contains(&worst), "{worst} bytes at a time");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let dir = TempDir::new().unwrap();
    let write = |name: &str, text: &str, mode: u32| {
        let path = dir.path().join(name);
        fs_err::write(&path, text).unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let rows = [
        (dir.path().join("missing"), None),
        (write("plain", "#!/bin/sh\n", 0o644), Some("chmod +x")),
        (
            write("strange", "#!/no/such/python3 -u\nprint()\n", 0o755),
            Some("asks for `/no/such/python3 -u`"),
        ),
        (
            write("windows", "#!/bin/sh\r\nexit 0\r\n", 0o755),
            Some("its lines end as on Windows"),
        ),
        (
            write("marked", "\u{feff}#!/bin/sh\nexit 0\n", 0o755),
            Some("saved with a byte order mark"),
        ),
        (dir.path().to_owned(), Some("it is a directory")),
        (
            write("nameless", "exit 0\n", 0o755),
            Some("a script needs a first line"),
        ),
    ];
    for (program, hint) in rows {
        let error = run(Spawn::new(&program, LONG)).await.unwrap_err();
        assert_eq!(error.to_string(), format!("cannot start {}", program.display()));
        assert!(std::error::Error::source(&error).is_some());
        match hint {
            None => assert_eq!(error.hint(), None),
            Some(hint) => assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint()),
        }
    }
    let lost = Spawn {
        cwd: Some(dir.path().join("nowhere")),
        ..bash("exit 0")
    };
    assert_eq!(
        run(lost).await.unwrap_err().hint(),
        Some("the working directory does not exist")
    );
}

#[tokio::test]
async fn a_file_that_is_still_being_written_is_tried_again() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("true");
    fs_err::copy("/bin/true", &path).unwrap();
    let writer = fs_err::OpenOptions::new().append(true).open(&path).unwrap();
    let spawner = Spawner::new().unwrap();
    let cancel = CancellationToken::new();
    let release = async {
        let mark = spawner.marks().next();
        let program = Program::of(&Spawn::new(&path, LONG), &mark).unwrap();
        let refused = spawner
            .spawn(program, mark, Instant::now() + LONG, &cancel)
            .await
            .map(drop);
        let Err(Unborn::Refused(refused)) = refused else {
            unreachable!("{refused:?}")
        };
        assert_eq!(refused.kind(), io::ErrorKind::ExecutableFileBusy);
        drop(writer);
    };
    let (finished, ()) = tokio::join!(spawner.run(Spawn::new(&path, LONG), &cancel), release);
    assert!(finished.unwrap().exit.is_success());
}

/// The variable in a process that runs one test as an actor of its own.
const ACTOR: &str = "ADDON_OPERATOR_TEST_ACTOR";

fn is_actor() -> bool {
    std::env::var_os(ACTOR).is_some()
}

/// Runs the test with this name in a process of its own.
fn actor(test: &str) -> Spawn {
    let mut actor = bash("");
    actor.program = std::env::current_exe().unwrap();
    actor.args = ["--exact", &format!("tests::{test}"), "--nocapture"]
        .map(Into::into)
        .to_vec();
    actor.env.push((ACTOR.into(), "1".into()));
    actor
}

#[tokio::test]
async fn children_die_with_us() {
    if is_actor() {
        let spawn = Spawn {
            stdout: Output::lines(|line| println!("{line}")),
            ..bash("echo child $$; exec sleep 1000")
        };
        run(spawn).await.unwrap();
        unreachable!("the actor is killed before");
    }
    let cancel = CancellationToken::new();
    let trigger = cancel.clone();
    let (sender, mut pids) = tokio::sync::mpsc::unbounded_channel();
    let stdout = Output::lines(move |line| {
        if let Some(pid) = line.strip_prefix("child ") {
            sender.send(pid.to_owned()).unwrap();
            trigger.cancel();
        }
    });
    let spawn = Spawn {
        stdout,
        ..actor("children_die_with_us")
    };
    Spawner::new().unwrap().run(spawn, &cancel).await.unwrap_err();
    let pid = pids.recv().await.unwrap();
    until("the child is dead", || !lives(&pid)).await;
}

#[tokio::test]
async fn a_start_copies_none_of_our_memory() {
    const PAGES: usize = 8192;
    if !is_actor() {
        // In a process of its own, where no other test starts a program meanwhile.
        let finished = run(actor("a_start_copies_none_of_our_memory")).await.unwrap();
        let said = finished.stdout.text() + &finished.stderr.text();
        assert!(finished.exit.is_success() && said.contains("1 passed"), "{said}");
        return;
    }
    let mut memory = vec![1_u8; PAGES * 4096];
    run(bash("exit 0")).await.unwrap();
    // A page that was shared with a child faults at the next write.
    let before = faults_of_this_thread();
    for page in memory.chunks_mut(4096) {
        page[0] += 1;
    }
    let faults = faults_of_this_thread() - before;
    assert!(std::hint::black_box(&memory).contains(&2));
    assert!(faults < PAGES / 2, "{faults} faults");
}

fn faults_of_this_thread() -> usize {
    let stat = fs_err::read_to_string("/proc/thread-self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace();
    fields.skip(7).map(|field| field.parse().unwrap()).next().unwrap()
}

#[tokio::test]
async fn orphans_are_reaped_and_our_own_keep_their_exit_code() {
    if is_actor() {
        return play_init().await;
    }
    // An init reaps every child, also those of other tests, so it needs a process of its own.
    let finished = run(actor("orphans_are_reaped_and_our_own_keep_their_exit_code"))
        .await
        .unwrap();
    assert!(
        finished.exit.is_success(),
        "{}{}",
        finished.stdout.text(),
        finished.stderr.text()
    );
    assert!(
        finished.stdout.text().contains("1 passed"),
        "{}",
        finished.stdout.text()
    );
}

async fn play_init() {
    sys::adopt_orphans().unwrap();
    be_init(&Spawner::with(Orphans::Ours).unwrap()).await;
}

#[tokio::test]
async fn the_first_process_of_a_container_waits_for_orphans_unasked() {
    if is_actor() {
        assert_eq!(std::process::id(), 1);
        return be_init(&Spawner::new().unwrap()).await;
    }
    let test = "the_first_process_of_a_container_waits_for_orphans_unasked";
    // As root, and as an ordinary user where user namespaces are allowed. Where they are not, the test above has to be
    // enough.
    for privileges in [&[][..], &["--user", "--map-root-user"]] {
        let container = |inner: Spawn| Spawn {
            program: "/usr/bin/unshare".into(),
            args: privileges
                .iter()
                .chain(&["--pid", "--fork", "--kill-child", "--mount-proc", "--"])
                .map(Into::into)
                .chain([inner.program.clone().into_os_string()])
                .chain(inner.args.clone())
                .collect(),
            ..inner
        };
        if !run(container(bash("exit 0")))
            .await
            .is_ok_and(|finished| finished.exit.is_success())
        {
            continue;
        }
        let finished = run(container(actor(test))).await.unwrap();
        let said = finished.stdout.text() + &finished.stderr.text();
        assert!(finished.exit.is_success() && said.contains("1 passed"), "{said}");
        return;
    }
}

/// Checks the duties of an init: it reaps orphans, and leaves its own children and their resource usage to their runs.
async fn be_init(spawner: &Spawner) {
    let cancel = CancellationToken::new();
    // The outer shell ends first, so the inner one becomes a child of this process.
    let orphan = spawner.run(bash("setsid sleep 0.2 >&- 2>&- & echo $!"), &cancel);
    // Each shell has ended long before its run notices, because its output is still open.
    let scripts = (0..20).map(|code| {
        bash(&format!(
            "for ((i = 0; i < 20000; i++)); do :; done; sleep 1.5 & exit {code}"
        ))
    });
    let ours = futures::future::join_all(scripts.map(|script| spawner.run(script, &cancel)));
    let (orphan, ours) = tokio::join!(orphan, ours);
    let orphan = orphan.unwrap().stdout.text();
    until("the orphan is buried", || {
        !Path::new("/proc").join(orphan.trim()).exists()
    })
    .await;
    for (code, finished) in (0..).zip(ours) {
        let finished = finished.unwrap();
        assert_eq!(finished.exit, Exit::Code(code));
        let Usage {
            user,
            sys,
            max_rss_bytes,
            ..
        } = finished.usage;
        assert!(
            user + sys > Duration::ZERO && max_rss_bytes > 1 << 20,
            "{:?}",
            finished.usage
        );
    }
}

#[tokio::test]
async fn a_failed_program_is_quoted_or_its_end_is_told() {
    let rows = [
        ("echo out; echo one >&2; echo two >&2; exit 3", "one\ntwo\n"),
        ("echo out; exit 3", "cmd run: exit status 3"),
        ("printf '\\n ' >&2; exit 3", "cmd run: exit status 3"),
        ("kill -KILL $$", "cmd run: signal: killed"),
    ];
    for (script, expected) in rows {
        assert_eq!(run(bash(script)).await.unwrap().complaint(), expected, "{script}");
    }
    let cut = Spawn {
        stderr: Output::captured(3),
        ..bash("echo lots of talk >&2; exit 1")
    };
    assert_eq!(run(cut).await.unwrap().complaint(), "lot… and 10 bytes more");
}
