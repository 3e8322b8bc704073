//! Help texts: each command shows the flags that it uses, with its own default. All commands of a group take the flags of
//! the group. Must never change what a flag does.

mod needless;

use std::ffi::OsStr;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args as _, Command, CommandFactory, FromArgMatches};
use command::Target;
use command::outside::typed::PLUGIN;

use super::{Cli, HooksCli};

/// The name under which the binary serves hooks without modules.
pub const OF_HOOKS: &str = "shell-operator";
const HOOKS: &str = "hooks";
const START: &str = "start";

const OUTPUT: &str = "output";

/// The default forms of answers, for the commands of groups in which the commands have different defaults.
const FORMS: [(&str, &str); 23] = [
    ("global config", "yaml"),
    ("global list", "yaml"),
    ("global patches", "json"),
    ("global snapshots", "yaml"),
    ("global values", "yaml"),
    ("module apis", "text"),
    ("module config", "yaml"),
    ("module diff", "text"),
    ("module events", "text"),
    ("module get", "text"),
    ("module history", "text"),
    ("module lint", "text"),
    ("module list", "yaml"),
    ("module patches", "json"),
    ("module purge", "text"),
    ("module resource-monitor", "yaml"),
    ("module snapshots", "yaml"),
    ("module source", "text"),
    ("module source check", "text"),
    ("module source status", "text"),
    ("module tree", "text"),
    ("module values", "yaml"),
    ("module why", "text"),
];

/// Parses the command line of this process.
pub fn parse<Program: CommandFactory + FromArgMatches>() -> Result<Program, clap::Error> {
    let mut matches = told(Program::command()).try_get_matches()?;
    Program::from_arg_matches_mut(&mut matches)
}

/// Parses the command line of this process as a plugin of kubectl, which runs no operator here.
pub fn parse_plugin() -> Result<Cli, clap::Error> {
    let command = [START, HOOKS].iter().fold(Cli::command(), |command, own| {
        command.mut_subcommand(own, |inner| inner.hide(true))
    });
    let command = command.name(PLUGIN).bin_name("kubectl addons").after_help(None::<&str>);
    let command = command.subcommand_required(true).arg_required_else_help(true);
    let mut matches = told(command).try_get_matches()?;
    Cli::from_arg_matches_mut(&mut matches)
}

/// The hint for a flag that stands before its command, or for a directory in the place of a command.
pub fn hint(error: &clap::Error, program: Option<&OsStr>, words: &[String]) -> Option<String> {
    let is_of_hooks = program == Some(OsStr::new(OF_HOOKS));
    let (command, path, words) = match words {
        words if is_of_hooks => (HooksCli::command(), OF_HOOKS.to_owned(), words),
        [first, rest @ ..] if first == HOOKS => (HooksCli::command(), format!("addon-operator {HOOKS}"), rest),
        words => (Cli::command(), "addon-operator".to_owned(), words),
    };
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let first = words.first()?;
    match error.kind() {
        ErrorKind::UnknownArgument if first.starts_with("--") => {
            let flag = context(ContextKind::InvalidArg)?.split('=').next()?;
            let mut flags = command.find_subcommand(START)?.get_arguments();
            let is_of_start = flags.any(|known| known.get_long() == flag.strip_prefix("--"));
            is_of_start.then(|| format!("flags stand behind a command: `{path} {START} {flag} ...`"))
        }
        ErrorKind::InvalidSubcommand if first.contains('/') && path != "addon-operator" => Some(format!(
            "`{path} {START} --hooks-dir {first}` names the directory of hooks"
        )),
        _ => None,
    }
}

/// The command line with the help of each command.
pub(super) fn told(mut command: Command) -> Command {
    // Adds the flags of a group to its commands.
    command.build();
    let command = fitted(command);
    if command.find_subcommand(HOOKS).is_some() {
        command.mut_subcommand(HOOKS, fitted)
    } else {
        command
    }
}

/// The commands below this one with the flags that each of them uses.
fn fitted(mut command: Command) -> Command {
    let of_operator = Target::augment_args(Command::default());
    for path in needless::ALONE {
        command = change(command, path, &|arg| {
            let is_needless = of_operator
                .get_arguments()
                .any(|needless| needless.get_id() == arg.get_id());
            if is_needless { arg.hide(true) } else { arg }
        });
    }
    let needless: [(&str, &[&str]); 4] = [
        (OUTPUT, &needless::OF_ONE_FORM),
        ("debug_unix_socket", &needless::WITHOUT_SOCKET),
        ("pod", &needless::WITHOUT_POD),
        ("show_secrets", &needless::WITHOUT_SECRETS),
    ];
    for (flag, paths) in needless {
        for path in paths {
            command = change_flag(command, path, flag, |arg| arg.hide(true));
        }
    }
    for path in needless::WITHOUT_POD {
        command = change_flag(command, path, "namespace", |arg| {
            arg.help("Namespace of the operator [default: the kubeconfig's]")
        });
    }
    for (path, form) in FORMS {
        command = change_flag(command, path, OUTPUT, |arg| {
            arg.help(format!("Format of the answer [default: {form}]"))
        });
    }
    command
}

fn change_flag(command: Command, path: &str, flag: &str, change_it: impl Fn(Arg) -> Arg) -> Command {
    change(command, path, &|arg| {
        if arg.get_id() == flag { change_it(arg) } else { arg }
    })
}

/// Changes all flags of a command, if the program has the command.
fn change(command: Command, path: &str, of_each: &dyn Fn(Arg) -> Arg) -> Command {
    let (name, rest) = path.split_once(' ').unwrap_or((path, ""));
    if command.find_subcommand(name).is_none() {
        return command;
    }
    command.mut_subcommand(name, |inner| match rest {
        "" => inner.mut_args(of_each),
        rest => change(inner, rest, of_each),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(path: &str) -> String {
        let mut command = told(Cli::command());
        let found = path
            .split(' ')
            .fold(&mut command, |command, name| command.find_subcommand_mut(name).unwrap());
        found.render_long_help().to_string()
    }

    /// The commands below this one that have no commands of their own, with the marks of the flags that their help shows.
    fn shown(command: &Command, path: &str, all: &mut Vec<(String, String)>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let path = format!("{path} {}", inner.get_name()).trim_start().to_owned();
            if inner.has_subcommands() {
                shown(inner, &path, all);
                continue;
            }
            let marks = [
                ("debug_unix_socket", 's'),
                ("namespace", 'n'),
                ("pod", 'p'),
                ("kube_config", 'k'),
                (OUTPUT, 'o'),
                ("show_secrets", 'x'),
            ];
            let is_shown = |flag: &str| {
                inner
                    .get_arguments()
                    .any(|arg| arg.get_id() == flag && !arg.is_hide_set())
            };
            let marks = marks.iter().filter(|(flag, _)| is_shown(flag)).map(|(_, mark)| mark);
            all.push((path, marks.collect()));
        }
    }

    /// Each command with the flags that it uses. s: socket, n: namespace, p: pod, k: kubeconfig, o: output, x: secrets.
    const USED: [(&str, &[&str]); 13] = [
        (
            "",
            &[
                "completion",
                "module manifest",
                "module new",
                "module pull",
                "module push",
                "module test",
                "version",
            ],
        ),
        ("", &["global test", "hook replay", "package choose"]),
        ("o", &["config check", "module lint", "object health"]),
        ("no", &["rbac generate"]),
        (
            "nko",
            &["migrate from", "module diff", "module events", "module history"],
        ),
        ("snkx", &["start"]),
        ("npk", &["page"]),
        (
            "nk",
            &[
                "channel pin",
                "channel resume",
                "channel rollback",
                "module logs",
                "module release repair",
                "module resume",
                "module source resume",
                "module suspend",
                "module upgrade",
            ],
        ),
        ("snk", &["module disable", "module enable"]),
        (
            "snpk",
            &[
                "channel approve",
                "config set",
                "hook record",
                "module reload",
                "module source approve",
                "module source pin",
                "module source rollback",
                "module wait",
            ],
        ),
        ("snpkx", &["module render", "raw"]),
        (
            "snpko",
            &[
                "config list",
                "config lost",
                "global list",
                "hook list",
                "module apis",
                "module purge",
                "module resource-monitor",
                "plan",
            ],
        ),
        (
            "snpkox",
            &[
                "channel check",
                "channel status",
                "global config",
                "global patches",
                "global snapshots",
                "global values",
                "hook records",
                "hook snapshot",
                "module config",
                "module get",
                "module list",
                "module patches",
                "module snapshots",
                "module source check",
                "module source status",
                "module tree",
                "module values",
                "module why",
                "queue list",
                "queue main",
                "why",
            ],
        ),
    ];

    #[test]
    fn each_command_shows_the_flags_that_it_uses() {
        let mut all = Vec::new();
        let (with_modules, of_hooks) = (told(Cli::command()), told(HooksCli::command()));
        shown(&with_modules, "", &mut all);
        shown(&of_hooks, HOOKS, &mut all);
        assert!(all.iter().any(|(path, _)| path == "hooks hook list"), "{all:?}");
        for (path, marks) in all {
            let path = path.strip_prefix("hooks ").unwrap_or(&path);
            let used = USED
                .iter()
                .find(|(_, paths)| paths.contains(&path))
                .map(|(used, _)| *used);
            assert_eq!(Some(marks.as_str()), used, "{path}");
        }
    }

    #[test]
    fn each_command_has_its_own_default() {
        for (path, form) in FORMS {
            let help = help(path);
            assert!(help.contains(&format!("[default: {form}]")), "{path}\n{help}");
            assert!(!help.contains("of get"), "{path}\n{help}");
        }
    }

    fn hinted(words: &str) -> Option<String> {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let typed = || words.iter().map(String::as_str);
        let program = Some(OsStr::new(&words[0]));
        let error = if words[0] == OF_HOOKS {
            HooksCli::command().try_get_matches_from(typed()).unwrap_err()
        } else {
            told(Cli::command()).try_get_matches_from(typed()).unwrap_err()
        };
        hint(&error, program, &words[1..])
    }

    #[test]
    fn a_flag_before_its_command_is_told_its_place() {
        for (typed, expected) in [
            (
                "addon-operator hooks --hooks-dir /h",
                Some("`addon-operator hooks start --hooks-dir ...`"),
            ),
            (
                "addon-operator hooks --hooks-dir=/h start",
                Some("`addon-operator hooks start --hooks-dir ...`"),
            ),
            (
                "addon-operator hooks /h",
                Some("`addon-operator hooks start --hooks-dir /h`"),
            ),
            (
                "shell-operator --listen-port 1",
                Some("`shell-operator start --listen-port ...`"),
            ),
            ("shell-operator ./h", Some("`shell-operator start --hooks-dir ./h`")),
            (
                "addon-operator --modules-dir m",
                Some("`addon-operator start --modules-dir ...`"),
            ),
            ("addon-operator --hooks-dir m", None),
            ("addon-operator hooks --modules-dir m", None),
            ("addon-operator hooks run", None),
            ("addon-operator queue --hooks-dir m", None),
            ("addon-operator ./modules", None),
        ] {
            let hint = hinted(typed);
            match expected {
                Some(expected) => assert!(
                    hint.as_ref().is_some_and(|hint| hint.contains(expected)),
                    "{typed}: {hint:?}"
                ),
                None => assert_eq!(hint, None, "{typed}"),
            }
        }
    }

    #[test]
    fn a_flag_that_is_not_shown_is_taken_all_the_same() {
        let words = [
            "addon-operator",
            "module",
            "--namespace",
            "a",
            "lint",
            "--output",
            "json",
            "m",
        ];
        let matches = told(Cli::command()).try_get_matches_from(words);
        assert!(matches.is_ok(), "{:?}", matches.err());
    }
}
