//! Whole commands as people type them: their output, its streams, and their exit codes.
//!
//! Each file in `tests/cli` is one command: its first line is the command line, the rest the result. With `UPDATE=1`
//! the tests write the result. A new file needs only its first line.
#![expect(clippy::disallowed_methods, reason = "the program under test is a process")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

#[path = "module_test"]
mod module_test {
    mod drafted;
    mod failing;
    mod global;
    mod played;
    mod stage;
}

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use testbed::port::KeptPort;

const PROGRAM: &str = env!("CARGO_BIN_EXE_addon-operator");

/// A command of the program with only these environment variables.
fn program(args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(args).env_clear().stdin(Stdio::null());
    command
        .env("DEBUG_UNIX_SOCKET", "/nowhere/debug.socket")
        .envs(variables.iter().copied());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs the command of a file's first line, `$ NAME=VALUE… addon-operator ARGS…` (or `shell-operator`, or `kubectl-addons`), and returns its
/// exit code and output as text.
fn transcript(first_line: &str) -> String {
    let words: Vec<&str> = first_line.strip_prefix("$ ").unwrap().split(' ').collect();
    let at = words
        .iter()
        .position(|word| word.ends_with("-operator") || *word == "kubectl-addons")
        .unwrap();
    let variables: Vec<(&str, &str)> = words[..at].iter().map(|word| word.split_once('=').unwrap()).collect();
    let mut called = program(&words[at + 1..], &variables);
    let Output { status, stdout, stderr } = called.arg0(words[at]).output().unwrap();
    let mut shown = vec![first_line.to_owned()];
    for (stream, output) in [("stdout", text(&stdout)), ("stderr", text(&stderr))] {
        if !output.is_empty() {
            let output = output.replace(env!("CARGO_PKG_VERSION"), "<version>");
            shown.push(format!("--- {stream}\n{}", output.trim_end_matches('\n')));
        }
    }
    shown.push(format!("--- exit code {}\n", status.code().unwrap()));
    shown.join("\n")
}

#[test]
fn commands_print_what_is_written_down() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let update = std::env::var_os("UPDATE").is_some();
    let mut paths: Vec<PathBuf> = fs_err::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let written = fs_err::read_to_string(&path).unwrap();
        let shown = transcript(written.lines().next().unwrap());
        if update {
            fs_err::write(&path, &shown).unwrap();
        } else {
            assert_eq!(shown, written, "{} (UPDATE=1 writes it)", path.display());
        }
    }
}

/// A folder to start the operator in, with a kubeconfig of a cluster that does not answer.
struct Place {
    dir: tempfile::TempDir,
    port: KeptPort,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["modules/010-one", "global-hooks"] {
            fs_err::create_dir_all(dir.path().join(name)).unwrap();
        }
        fs_err::write(dir.path().join("modules/010-one/values.yaml"), "one: {size: 1}\n").unwrap();
        let kubeconfig = "{apiVersion: v1, kind: Config, current-context: a, users: [{name: a, user: {token: t}}], \
                          clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], \
                          contexts: [{name: a, context: {cluster: a, user: a}}]}";
        fs_err::write(dir.path().join("kubeconfig"), kubeconfig).unwrap();
        Self {
            dir,
            port: KeptPort::keep().unwrap(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = program(args, &[]);
        command
            .current_dir(self.dir.path())
            .env("DEBUG_UNIX_SOCKET", self.path("debug.socket"));
        command
            .env("KUBE_CONFIG", self.path("kubeconfig"))
            .env("ADDON_OPERATOR_TMP_DIR", self.path("tmp"));
        command
            .env("ADDON_OPERATOR_NAMESPACE", "default")
            .env("ADDON_OPERATOR_LISTEN_ADDRESS", "127.0.0.1");
        command.env("ADDON_OPERATOR_LISTEN_PORT", self.port.number().to_string());
        command
    }

    /// Starts the operator with more arguments and waits until it refuses to run.
    fn refused(&self, args: &[&str]) -> (i32, String) {
        let output = self.command(&[&["start"], args].concat()).output().unwrap();
        (
            output.status.code().unwrap(),
            text(&output.stdout) + &text(&output.stderr),
        )
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command(args).output().unwrap();
        (
            output.status.code().unwrap(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }
}

/// An operator. Dropping it kills it, also when its test fails.
struct Running(Child);

impl Running {
    fn start(place: &Place) -> Self {
        let log = fs_err::File::create(place.path("log")).unwrap().into_parts().0;
        Self(place.command(&["start"]).stdout(log).spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Repeats `look` until it returns a value.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_start_that_cannot_work_says_why() {
    let place = Place::new();
    let taken = TcpListener::bind(("127.0.0.1", place.port.number())).unwrap();
    let (code, said) = place.refused(&[]);
    assert_eq!(code, 1);
    let address = format!(
        "cannot listen on 127.0.0.1:{} for probes and metrics",
        place.port.number()
    );
    assert!(said.contains(&address) && said.contains("start --help"), "{said}");
    drop(taken);

    let rows = [
        (["--global-hooks-dir", "no-hooks"], "no-hooks: does not exist"),
        (["--modules-dir", "modules:no-modules"], "no-modules: does not exist"),
        (
            ["--debug-unix-socket", "kubeconfig"],
            "cannot replace kubeconfig, which is no socket",
        ),
        (
            ["--tmp-dir", "kubeconfig"],
            "cannot prepare the directory for temporary files kubeconfig",
        ),
    ];
    for (args, expected) in rows {
        let (code, said) = place.refused(&args);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(expected), "{expected} is not in {said}");
    }

    fs_err::create_dir(place.path("modules/010-module-1")).unwrap();
    let (code, said) = place.refused(&[]);
    let expected =
        "'module-1' name should be in kebab-case and be restorable from camelCase: consider renaming to 'module1'";
    assert!(code == 1 && said.contains(expected), "{said}");
}

#[test]
fn an_operator_without_a_cluster_can_be_looked_at_and_stopped() {
    let place = Place::new();
    let mut running = Running::start(&place);
    let ready = ["raw", "/module/list.json"];
    let list = wait_for("the debug socket", || {
        Some(place.run(&ready)).filter(|(code, ..)| *code == 0)
    });
    assert_eq!(list.1, "{\"enabledModules\":[]}\n\n");
    wait_for("a word about the API server", || {
        let log = fs_err::read_to_string(place.path("log")).unwrap();
        log.contains("http://127.0.0.1:1").then_some(())
    });

    let (code, table, _) = place.run(&["module", "list", "-o", "wide"]);
    assert_eq!(code, 0);
    assert!(
        table.starts_with("NAME  ORDER  ENABLED")
            && table.contains("\none   10     unknown  not decided yet  Undecided"),
        "{table}"
    );
    let (code, why, _) = place.run(&["module", "why", "one"]);
    assert!(
        code == 0 && why.starts_with("module: one\norder: 10\nenabled: unknown, not decided yet\nstate: Undecided\n"),
        "{why}"
    );
    let (_, values, _) = place.run(&["module", "values", "one"]);
    assert_eq!(values, "size: 1\n\n");
    let (code, out, err) = place.run(&["module", "values", "nowhere"]);
    assert_eq!((code, out.as_str()), (0, "module not found\n\n"));
    assert_eq!(err, "hint: `addon-operator module list -o wide` names all modules\n");
    assert_eq!(
        place.run(&["config", "set", "log.level", "error"]),
        (0, "\n".to_owned(), String::new())
    );
    let (_, parameters, _) = place.run(&["config", "list", "-o", "json"]);
    assert!(parameters.contains("\"value\":\"error\""), "{parameters}");

    // No channel is followed here, so no version is available.
    let (code, status, _) = place.run(&["channel", "status"]);
    assert!(
        code == 0 && status.starts_with("state:      off\nwhy:        "),
        "{status}"
    );
    let (code, status, _) = place.run(&["channel", "status", "-o", "json"]);
    assert!(code == 0 && status.contains("\"state\":\"off\""), "{status}");
    let (code, said, why) = place.run(&["channel", "approve", "--yes"]);
    assert!(code == 1 && said.is_empty(), "{said}");
    assert!(
        why.contains("no version is available: the state is off\nhint: "),
        "{why}"
    );
    // The cluster cannot be reached, so no leader can be asked.
    let (code, said, why) = place.run(&["channel", "check"]);
    assert!(
        code == 1 && said.is_empty() && why.starts_with("error: "),
        "{said}{why}"
    );

    running.signal("TERM");
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
    assert!(!Path::new(&place.path("debug.socket")).exists());
    assert_eq!(
        fs_err::read_dir(place.path("tmp")).unwrap().count(),
        0,
        "temporary files are left"
    );
}

#[test]
fn a_second_signal_leaves_no_process_behind() {
    let place = Place::new();
    let (hook, pid) = (place.path("global-hooks/hook.sh"), place.path("pid"));
    let script = format!("#!/bin/bash\ntrap '' TERM\nsleep 1000 &\necho $! > {pid}.new && mv {pid}.new {pid}\nwait\n");
    fs_err::write(&hook, script).unwrap();
    fs_err::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
    let mut running = Running::start(&place);
    let pid = wait_for("a child of the hook", || fs_err::read_to_string(&pid).ok());
    running.signal("TERM");
    wait_for("a word about the signal", || {
        let log = fs_err::read_to_string(place.path("log")).unwrap();
        log.contains("Signal is received").then_some(())
    });
    running.signal("TERM");
    assert_eq!(running.0.wait().unwrap().code(), Some(143));
    wait_for("the end of the child", || {
        let stat = fs_err::read_to_string(format!("/proc/{}/stat", pid.trim()));
        // A process that has ended may still wait to be reaped.
        stat.map_or(true, |stat| stat.contains(") Z ")).then_some(())
    });
}

/// Makes a global hook that runs this script when it is asked for its configuration, and returns the text that the
/// script writes.
fn ask_hook(place: &Place, script: &str, start: impl FnOnce(&Place) -> Running) -> (Running, String) {
    let (hook, said) = (place.path("global-hooks/hook.sh"), place.path("said"));
    let script = format!("#!/bin/bash\n({script}) > {said}.new && mv {said}.new {said}\nsleep 1000\n");
    fs_err::write(&hook, script).unwrap();
    fs_err::set_permissions(&hook, Permissions::from_mode(0o755)).unwrap();
    let running = start(place);
    let said = wait_for("a word of the hook", || fs_err::read_to_string(&said).ok());
    (running, said.trim().to_owned())
}

fn lives(pid: &str) -> bool {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// A script that starts a process in a session of its own and without a parent, as daemons do.
const ESCAPE: &str = "setsid bash -c 'sleep 1000 >/dev/null 2>&1 & echo $!'";

#[test]
fn what_has_left_the_group_of_its_hook_ends_with_the_operator() {
    let place = Place::new();
    let (mut running, pid) = ask_hook(&place, ESCAPE, Running::start);
    assert!(lives(&pid));
    running.signal("TERM");
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
    assert!(!lives(&pid), "it outlives the operator");
}

#[test]
fn what_a_killed_operator_has_left_ends_when_the_next_one_starts() {
    let place = Place::new();
    let (mut killed, pid) = ask_hook(&place, ESCAPE, Running::start);
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    assert!(lives(&pid), "another process has ended it");
    fs_err::remove_file(place.path("global-hooks/hook.sh")).unwrap();
    let _next = Running::start(&place);
    wait_for("its end", || (!lives(&pid)).then_some(()));
}

#[test]
fn hooks_get_no_credentials_of_ours_leave_no_core_and_die_before_us() {
    let place = Place::new();
    let look = "env; cat /proc/self/limits; until grep -x 1000 /proc/$$/oom_score_adj; do :; done";
    let (running, said) = ask_hook(&place, look, |place| {
        let mut command = place.command(&["start"]);
        command
            .env("TRACING_OTLP_AUTH_TOKEN", "opensesame")
            .env("OTHER", "seen");
        Running(command.stdout(Stdio::null()).spawn().unwrap())
    });
    assert!(said.contains("OTHER=seen") && !said.contains("opensesame"), "{said}");
    let limits = fs_err::read_to_string(format!("/proc/{}/limits", running.0.id())).unwrap();
    for limits in [&said, &limits] {
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"))
            .unwrap();
        let words: Vec<&str> = core.split_whitespace().collect();
        assert_eq!(words[4..6], ["0", "0"], "{core}");
    }
    let adjusted = fs_err::read_to_string(format!("/proc/{}/oom_score_adj", running.0.id())).unwrap();
    assert!(
        said.ends_with("\n1000") && adjusted.trim() != "1000",
        "{said} {adjusted}"
    );
}

#[test]
fn the_completion_of_bash_knows_our_commands() {
    let script = program(&["completion", "bash"], &[]).output().unwrap();
    assert!(script.status.success() && script.stderr.is_empty());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("completion");
    fs_err::write(&path, &script.stdout).unwrap();
    // As the shell does when a person types `addon-operator module en` and presses the tabulator.
    let typed = "source completion; complete -p addon-operator; COMP_WORDS=(addon-operator module en); COMP_CWORD=2; \
                 _addon_operator addon-operator en module; echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    let output = bash.args(["-c", typed]).current_dir(dir.path()).output().unwrap();
    let expected = "complete -o bashdefault -o default -o nosort -F _addon_operator addon-operator\nenable\n";
    assert_eq!(
        (text(&output.stdout).as_str(), text(&output.stderr).as_str()),
        (expected, "")
    );
}
