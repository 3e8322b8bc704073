//! Help texts: each command shows the flags that it uses, with its own default. All commands of a group take the flags of
//! the group. Must never change what a flag does.

use std::ffi::OsStr;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args as _, Command, CommandFactory, FromArgMatches};

use super::{Cli, HooksCli, Target};

/// The name under which the binary serves hooks without modules.
pub const OF_HOOKS: &str = "shell-operator";
const HOOKS: &str = "hooks";
const START: &str = "start";

/// The commands that ask neither an operator nor a cluster.
const ALONE: [&str; 9] = [
    "config check",
    "global test",
    "hook replay",
    "module lint",
    "module manifest",
    "module new",
    "module pull",
    "module push",
    "module test",
];

const OUTPUT: &str = "output";

/// The commands whose answer has one form.
const OF_ONE_FORM: [&str; 13] = [
    "global test",
    "hook record",
    "hook replay",
    "module disable",
    "module enable",
    "module manifest",
    "module new",
    "module pull",
    "module push",
    "module release repair",
    "module reload",
    "module render",
    "module upgrade",
];

/// The commands with the form of their answers without `-o`, in groups whose commands differ in it.
const FORMS: [(&str, &str); 16] = [
    ("global config", "yaml"),
    ("global list", "yaml"),
    ("global patches", "json"),
    ("global snapshots", "yaml"),
    ("global values", "yaml"),
    ("module apis", "text"),
    ("module config", "yaml"),
    ("module get", "text"),
    ("module lint", "text"),
    ("module list", "yaml"),
    ("module patches", "json"),
    ("module purge", "text"),
    ("module resource-monitor", "yaml"),
    ("module snapshots", "yaml"),
    ("module values", "yaml"),
    ("module why", "text"),
];

/// Parses the command line of this process.
pub fn parse() -> Result<Cli, clap::Error> {
    let mut matches = told(Cli::command()).try_get_matches()?;
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
    // Only then the commands of a group have the flags of the group.
    command.build();
    let of_operator = Target::augment_args(Command::default());
    for path in ALONE {
        command = change(command, path, &|arg| {
            let is_needless = of_operator
                .get_arguments()
                .any(|needless| needless.get_id() == arg.get_id());
            if is_needless { arg.hide(true) } else { arg }
        });
    }
    for path in OF_ONE_FORM {
        command = change_output(command, path, |arg| arg.hide(true));
    }
    for (path, form) in FORMS {
        command = change_output(command, path, |arg| {
            arg.help(format!("Format of the answer [default: {form}]"))
        });
    }
    command
}

fn change_output(command: Command, path: &str, change_it: impl Fn(Arg) -> Arg) -> Command {
    change(command, path, &|arg| {
        if arg.get_id() == OUTPUT { change_it(arg) } else { arg }
    })
}

/// Changes all flags of a command.
fn change(command: Command, path: &str, of_each: &dyn Fn(Arg) -> Arg) -> Command {
    match path.split_once(' ') {
        Some((group, rest)) => command.mut_subcommand(group, |inner| change(inner, rest, of_each)),
        None => command.mut_subcommand(path, |inner| inner.mut_args(of_each)),
    }
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

    #[test]
    fn commands_that_ask_no_operator_offer_no_way_to_one() {
        for path in ALONE {
            let help = help(path);
            for word in [
                "socket",
                "kubeconfig",
                "pod's",
                "--pod",
                "--namespace",
                "--show-secrets",
                "Cluster:",
            ] {
                assert!(!help.contains(word), "{path}: {word}\n{help}");
            }
        }
        assert!(help("module why").contains("--debug-unix-socket"));
    }

    #[test]
    fn each_command_has_its_own_default() {
        for (path, form) in FORMS {
            let help = help(path);
            assert!(help.contains(&format!("[default: {form}]")), "{path}\n{help}");
            assert!(!help.contains("of get"), "{path}\n{help}");
        }
        for path in OF_ONE_FORM {
            assert!(!help(path).contains("--output"), "{path}");
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
